// Waits for every child there is, as tracers do: `all_children HOW`. Prints what it found, by name:
// its own child, or another. Asks for a report first, which starts a resolver.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile void* kept;

static pid_t find(const char* how, int* status) {
  struct rusage usage;
  siginfo_t found = {0};
  if (strcmp(how, "waitpid") == 0) return waitpid(-1, status, __WALL);
  if (strcmp(how, "wait3") == 0) return wait3(status, __WALL, &usage);
  if (strcmp(how, "wait4") == 0) return wait4(-1, status, __WALL, &usage);
  if (strcmp(how, "waitid") == 0) {
    if (waitid(P_ALL, 0, &found, WEXITED | __WALL) != 0) return -1;
  } else {  // look: twice, the first time to find it again
    if (waitid(P_ALL, 0, &found, WEXITED | WNOWAIT | __WALL) != 0) return -1;
    if (waitid(P_PID, (id_t)found.si_pid, &found, WEXITED | __WALL) != 0) return -1;
  }
  *status = found.si_status << 8;
  return found.si_pid;
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  kept = malloc(4711);
  const pid_t own = fork();
  if (own == 0) _exit(7);
  // Not before the child is there, which would be asked, too.
  if (argc > 2) raise(atoi(argv[2]));
  int status = 0;
  for (pid_t pid; (pid = find(argv[1], &status)) > 0;) {
    printf("%s %d\n", pid == own ? "own" : "another", WEXITSTATUS(status));
  }
  printf("%s\n", errno == ECHILD ? "none" : strerror(errno));
  status = 99;
  printf("%d %d\n", (int)waitpid(-1, &status, __WALL | WNOHANG), status);
  return 0;
}
