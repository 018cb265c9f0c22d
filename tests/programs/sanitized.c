// Built with each sanitizer: allocates in two threads, and with "leak" as argument 1 loses a block.
// With "wait" it says that it is ready and goes on when its input ends.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void* work(void* size) {
  char* block = malloc((size_t)size);
  block = realloc(block, 3 * (size_t)size);
  memset(block, 1, 3 * (size_t)size);
  free(block);
  return calloc(10, (size_t)size);
}

__attribute__((noinline)) static void lose(void) {
  char* volatile lost = malloc(1234);
  lost = NULL;
}

int main(int argc, char** argv) {
  pthread_t thread;
  void* block;
  pthread_create(&thread, NULL, work, (void*)100);
  pthread_join(thread, &block);
  free(block);
  free(work((void*)200));
  free(strdup("text"));
  signal(SIGUSR2, SIG_IGN);
  if (argc > 1 && strcmp(argv[1], "leak") == 0) lose();
  if (argc > 1 && strcmp(argv[1], "wait") == 0) {
    puts("ready");
    fflush(stdout);
    char c;
    while (read(0, &c, 1) > 0) {
    }
  }
  puts("fine");
  return 0;
}
