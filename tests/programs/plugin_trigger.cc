// A library to preload after libmtrace.so, whose constructor therefore runs before that one's: it
// allocates, says what it finds as the action of SIGUSR1, and sends that signal to itself.
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>

__attribute__((constructor)) static void trigger() {
  free(malloc(100));
  struct sigaction action = {};
  sigaction(SIGUSR1, nullptr, &action);
  printf("%s\n", action.sa_handler == SIG_DFL ? "default" : "not the default");
  fflush(stdout);
  kill(getpid(), SIGUSR1);
  printf("alive\n");
  fflush(stdout);
}
