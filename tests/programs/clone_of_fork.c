/* A child of fork, which does nothing itself, makes a child by clone(2), as a browser's zygote
 * does; that one allocates and reports. Prints "PID PARENT" of it. */
#include "truth.h"

static void* kept;

KEEPS(grandchild, kept, 500)

int main(void) {
  int status = 1;
  const pid_t child = fork();
  if (child == 0) {
    const long grandchild = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (grandchild == 0) {
      site_grandchild();
      printf("%d %d\n", (int)getpid(), (int)getppid());
      fflush(stdout);
      _exit(0);
    }
    _exit(syscall(SYS_wait4, grandchild, &status, 0, NULL) == grandchild ? status : 1);
  }
  check(waitpid(child, &status, 0) == child && status == 0, "children");
  return 0;
}
