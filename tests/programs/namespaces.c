// Makes a pid namespace for its children, asks for a report, and starts two: the first is the
// namespace's init, as is expected of it. Ends with status 77 where the system does not let it.
#include <sched.h>

#include "truth.h"

static void* volatile kept;

int main(void) {
  if (unshare(CLONE_NEWPID) != 0) return 77;
  kept = malloc(sized(1000));
  if (getenv("LD_PRELOAD") != NULL) raise(SIGUSR1);
  int ends[2];
  check(pipe(ends) == 0, "pipe");
  char letter;
  for (int i = 1; i <= 2; ++i) {
    const pid_t child = fork();
    check(child >= 0, "fork");
    if (child == 0) {
      check(getpid() == i, "pid");
      close(ends[1]);
      _exit((int)read(ends[0], &letter, 1));
    }
    if (i == 2) close(ends[1]);
  }
  for (int i = 1; i <= 2; ++i) check(wait(NULL) > 0, "wait");
  puts("two children");
  return 0;
}
