// Children made in the way that argument 1 names. Before each, the parent reports, so that what
// the child inherits is known. Prints "child PID" for children that go on as this program.
#include <spawn.h>
#include <sys/prctl.h>

#include "truth.h"

extern char** environ;
static void* before[4];
static void* after;

KEEPS(before, for (int i = 0; i < 4; ++i) before[i], 1000)
KEEPS(child, after, 333)
KEEPS(parent, after, 444)

static void report(void) {
  if (getenv("LD_PRELOAD") != NULL) kill(getpid(), SIGUSR1);
}

// In the child: frees two inherited blocks, allocates, and reports twice.
static void live_as_child(void) {
  free(before[0]);
  free(before[1]);
  site_child();
  report();
  free(before[2]);
  report();
}

static int finish(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) abort();
  site_parent();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 200 + WTERMSIG(status);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const char* mode = argv[1];
  site_before();
  print("start");
  report();
  if (strcmp(mode, "fork") == 0 || strcmp(mode, "_Fork") == 0 || strcmp(mode, "clone") == 0) {
    const pid_t child = mode[0] == 'f' ? fork()
                        : mode[0] == '_'
                            ? _Fork()
                            : (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0) {
      live_as_child();
      exit(21);
    }
    printf("child %d\n", (int)child);
    return finish(child);
  }
  if (strcmp(mode, "grandchild") == 0) {
    const pid_t child = fork();
    if (child == 0) {
      site_child();
      report();
      const pid_t grandchild = fork();
      if (grandchild == 0) {
        live_as_child();
        exit(22);
      }
      exit(finish(grandchild));
    }
    printf("child %d\n", (int)child);
    return finish(child);
  }
  if (strcmp(mode, "vfork") == 0) {
    // The child works in the parent's memory: what it does is the parent's.
    const pid_t child = vfork();
    if (child == 0) {
      site_child();
      free(before[0]);
      _exit(23);
    }
    return finish(child);
  }
  if (strcmp(mode, "fork_vfork") == 0) {
    // The first to do anything in the fork's child is a vfork child of that.
    const pid_t child = fork();
    if (child == 0) {
      const pid_t borrower = vfork();
      if (borrower == 0) {
        free(malloc(sized(77)));
        signal(SIGUSR1, SIG_IGN);
        _exit(7);
      }
      waitpid(borrower, NULL, 0);
      live_as_child();
      exit(26);
    }
    printf("child %d\n", (int)child);
    return finish(child);
  }
  if (strcmp(mode, "vfork_exec") == 0) {
    const pid_t child = vfork();
    if (child == 0) {
      execl("/proc/self/exe", argv[0], "leaf", NULL);
      _exit(127);
    }
    return finish(child);
  }
  if (strcmp(mode, "posix_spawn") == 0) {
    pid_t child;
    char* arguments[] = {argv[0], (char*)"leaf", NULL};
    if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ) != 0) return 3;
    return finish(child);
  }
  if (strcmp(mode, "system") == 0) {
    char command[4200];
    snprintf(command, sizeof(command), "'%s' leaf; exit 24", argv[0]);
    const int status = system(command);
    site_parent();
    return WEXITSTATUS(status);
  }
  if (strcmp(mode, "popen") == 0) {
    char command[4200];
    snprintf(command, sizeof(command), "'%s' leaf", argv[0]);
    FILE* pipe = popen(command, "r");
    char line[100];
    while (fgets(line, sizeof(line), pipe) != NULL) fputs(line, stdout);
    const int status = pclose(pipe);
    site_parent();
    return WEXITSTATUS(status);
  }
  if (strcmp(mode, "daemon") == 0) {
    // The daemon comes back to this process as an orphan, so that its end is seen.
    int ready[2];
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 || pipe(ready) != 0) return 3;
    const pid_t child = fork();
    if (child == 0) {
      close(ready[0]);
      // Closes nothing but 0, 1, 2, and its parent ends with _exit.
      if (daemon(1, 0) != 0) _exit(1);
      live_as_child();
      const pid_t me = getpid();
      if (write(ready[1], &me, sizeof(me)) < 0) _exit(1);
      exit(0);
    }
    close(ready[1]);
    pid_t daemon_pid = 0;
    const ssize_t size = read(ready[0], &daemon_pid, sizeof(daemon_pid));
    printf("child %d\ndaemon %d\n", (int)child, (int)daemon_pid);
    const int status = finish(child);
    int daemon_status = -1;
    wait(&daemon_status);
    printf("status %d of the daemon %x\n", status, (unsigned)daemon_status);
    return size == sizeof(daemon_pid) && daemon_status == 0 ? status : 4;
  }
  if (strcmp(mode, "exec") == 0) {
    if (chdir("/") != 0) return 3;
    execl("/proc/self/exe", argv[0], "leaf", NULL);
    return 4;
  }
  if (strcmp(mode, "leaf") == 0) {
    site_child();
    return 25;
  }
  return 2;
}
