// exec_storm COUNT HOW: two threads allocate or wait, and a third has the process become this
// program again, with COUNT one less, after 5 to 35 ms: by execve ("hook") or by the raw system
// call
// ("raw"). At 0 it ends.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace {

int count;
char** arguments;

void* allocate(void*) {
  for (;;) free(malloc(100));
}

void* replace(void*) {
  timespec left = {0, (5 + rand() % 30) * 1000000L};
  while (nanosleep(&left, &left) != 0) {
  }
  char less[16];
  snprintf(less, sizeof less, "%d", count - 1);
  char* words[] = {arguments[0], less, arguments[2], nullptr};
  if (strcmp(arguments[2], "raw") == 0) {
    syscall(SYS_execve, "/proc/self/exe", words, environ);
  } else {
    execve("/proc/self/exe", words, environ);
  }
  _exit(4);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  arguments = argv;
  count = atoi(argv[1]);
  if (count == 0) return 0;
  srand(static_cast<unsigned>(getpid() + count));
  pthread_t thread;
  pthread_create(&thread, nullptr, allocate, nullptr);
  pthread_create(&thread, nullptr, replace, nullptr);
  for (;;) {
    if (count % 2 != 0) pause();
    free(malloc(10));
  }
}
