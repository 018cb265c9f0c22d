// live_target [busy]: blocks every signal. At each line of input it leaves a block of so many bytes
// behind and says "done". busy: allocates and frees all the time meanwhile.
#include "truth.h"

SITE void* site_kept(size_t n) {
  char* p = malloc(n);
  if (p != NULL && n != 0) *(volatile char*)p = 1;  // its page is there
  NO_TAIL;
  return p;
}
GIVES(passing, (size_t n), malloc(n))

static void* work(void* argument) {
  for (;;) free(site_passing(50));
  return argument;
}

int main(int argc, char** argv) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, NULL);
  if (argc > 1 && strcmp(argv[1], "busy") == 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
  }
  char line[64];
  print("go");
  // Not stdio, which would allocate.
  for (ssize_t got; (got = read(STDIN_FILENO, line, sizeof line - 1)) > 0;) {
    line[got] = '\0';
    check(site_kept((size_t)atol(line)) != NULL, "memory");
    print("done");
  }
  return 0;
}
