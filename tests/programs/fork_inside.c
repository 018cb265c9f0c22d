/* fork_inside fork|_Fork|clone ROUNDS: a signal handler that interrupts malloc and free makes a
 * child, which goes on with what was interrupted and then does the same as its parent for a while.
 * The parent prints "good CHILDREN" when all have ended with status 0. */
#include <sys/time.h>

#include "truth.h"

static const char* mode;
static volatile sig_atomic_t in_child;
static volatile sig_atomic_t wanted;
static volatile sig_atomic_t children;
static void* kept[64];

SITE void site_kept(int i) {
  kept[i] = malloc(sized(100 + (size_t)i));
  NO_TAIL;
}

static void on_alarm(int number) {
  (void)number;
  if (in_child || children == wanted) return;
  const int error = errno;
  const long child = mode[0] == 'f'   ? fork()
                     : mode[0] == '_' ? _Fork()
                                      : syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
  check(child >= 0, "child");
  if (child == 0) {
    in_child = 1;
  } else {
    ++children;
  }
  errno = error;
}

static void churn(void) {
  for (int i = 0; i < 64; ++i) {
    free(kept[i]);
    site_kept(i);
  }
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  mode = argv[1];
  wanted = atoi(argv[2]);
  signal(SIGALRM, on_alarm);
  const struct itimerval often = {{0, 1000}, {0, 1000}};
  check(setitimer(ITIMER_REAL, &often, NULL) == 0, "timer");
  while (!in_child && children < wanted) churn();
  if (in_child) {
    for (int i = 0; i < 20; ++i) churn();
    _exit(0);
  }
  const struct itimerval never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &never, NULL);
  int good = 0;
  for (int status; wait(&status) > 0;) good += status == 0;
  printf("good %d\n", good);
  fflush(stdout);
  return 0;
}
