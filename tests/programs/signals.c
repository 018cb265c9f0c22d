// The program's own dealings with the signal that asks for reports (argument 2, a number).
#include <dirent.h>
#include <sys/prctl.h>

#include "truth.h"

static volatile sig_atomic_t ran;
static volatile sig_atomic_t children;
static void own(int signal) {
  (void)signal;
  ++ran;
}
static void child(int signal) {
  (void)signal;
  ++children;
}
static const char* name_of(void (*handler)(int)) {
  return handler == SIG_DFL   ? "default"
         : handler == SIG_IGN ? "ignore"
         : handler == own     ? "own"
                              : "other";
}
static void show_action(int signal) {
  struct sigaction action;
  if (sigaction(signal, NULL, &action) != 0) abort();
  printf("action %s flags %x mask %d\n", name_of(action.sa_handler), (unsigned)action.sa_flags,
         sigismember(&action.sa_mask, SIGTERM));
}
// Descriptors in ascending order of the directory; the one of the directory itself is the same
// each time.
static void show_descriptors(void) {
  DIR* directory = opendir("/proc/self/fd");
  long sum = 0;
  int count = 0;
  for (struct dirent* entry; (entry = readdir(directory)) != NULL;) {
    if (entry->d_name[0] == '.') continue;
    sum = sum * 31 + atoi(entry->d_name);
    ++count;
  }
  closedir(directory);
  printf("descriptors %d %ld\n", count, sum);
}

SITE void site_signals(void) {
  void* volatile p = malloc(sized(4321));
  fill(p, 4321);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const char* mode = argv[1];
  const int number = atoi(argv[2]);
  site_signals();
  if (strcmp(mode, "query") == 0) {
    show_action(number);
    kill(getpid(), number);
    show_action(number);
  } else if (strcmp(mode, "signal") == 0) {
    printf("before: %s\n", name_of(signal(number, own)));
    show_action(number);
    kill(getpid(), number);
    printf("ran %d\n", (int)ran);
    printf("before: %s\n", name_of(signal(number, SIG_DFL)));
    show_action(number);
  } else if (strcmp(mode, "sigaction") == 0) {
    struct sigaction action;
    struct sigaction before;
    memset(&action, 0, sizeof(action));
    action.sa_handler = own;
    action.sa_flags = SA_NODEFER;
    sigaddset(&action.sa_mask, SIGTERM);
    if (sigaction(number, &action, &before) != 0) return 3;
    printf("before: %s\n", name_of(before.sa_handler));
    show_action(number);
    raise(number);
    printf("ran %d\n", (int)ran);
  } else if (strcmp(mode, "raw") == 0) {
    // Past the C library, as a language runtime does it.
    struct {
      void (*handler)(int);
      unsigned long flags;
      void (*restorer)(void);
      unsigned long mask;
    } action = {SIG_IGN, 0, NULL, 0};
    if (syscall(SYS_rt_sigaction, number, &action, NULL, 8) != 0) return 3;
    kill(getpid(), number);
    printf("alive\n");
  } else if (strcmp(mode, "ignore") == 0) {
    printf("before: %s\n", name_of(signal(number, SIG_IGN)));
    kill(getpid(), number);
    show_action(number);
  } else if (strcmp(mode, "reset") == 0) {
    signal(number, SIG_DFL);
    kill(getpid(), number);
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_handler = SIG_DFL;
    sigaction(number, &action, NULL);
    kill(getpid(), number);
    signal(number, own);
    kill(getpid(), number);
    signal(number, SIG_DFL);
    kill(getpid(), number);
    printf("ran %d\n", (int)ran);
  } else if (strcmp(mode, "blocked") == 0) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    sigprocmask(SIG_BLOCK, &set, NULL);
    kill(getpid(), number);
    sigset_t pending;
    sigpending(&pending);
    printf("pending %d\n", sigismember(&pending, number));
    fflush(stdout);
    getchar();
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    printf("unblocked\n");
  } else if (strcmp(mode, "conduct") == 0) {
    show_descriptors();
    for (int i = 0; i < 3; ++i) {
      errno = 42;
      kill(getpid(), number);
      printf("errno %d\n", errno);
      show_descriptors();
    }
    sigset_t set;
    sigprocmask(SIG_SETMASK, NULL, &set);
    printf("mask %d %d\n", sigismember(&set, number), sigismember(&set, SIGTERM));
  } else if (strcmp(mode, "children") == 0 || strcmp(mode, "subreaper") == 0) {
    // A subreaper gets the orphans of its descendants as its own children.
    if (mode[0] == 's' && prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return 3;
    signal(SIGCHLD, child);
    for (int i = 0; i < 3; ++i) kill(getpid(), number);
    // One byte a round, so that there is time for a child to show.
    char byte;
    while (read(0, &byte, 1) == 1) {
      errno = 0;
      const pid_t pid = waitpid(-1, NULL, WNOHANG);
      printf("wait %d errno %d children %d\n", (int)pid, errno, (int)children);
      fflush(stdout);
    }
    errno = 0;
    const pid_t none = wait(NULL);
    printf("wait %d errno %d children %d\n", (int)none, errno, (int)children);
    const pid_t mine = fork();
    if (mine == 0) _exit(5);
    int status = 0;
    const pid_t got = waitpid(-1, &status, 0);
    printf("own child %d status %d children %d\n", got == mine, WEXITSTATUS(status), (int)children);
  } else if (strcmp(mode, "altstack") == 0) {
    // The smallest alternate stack that the system calls enough for a handler, and a page.
    const size_t size = (size_t)sysconf(_SC_MINSIGSTKSZ) + 4096;
    char* stack = malloc(size + 4096);
    memset(stack, 0x5a, size + 4096);
    const stack_t alternate = {.ss_sp = stack + 4096, .ss_flags = 0, .ss_size = size};
    if (sigaltstack(&alternate, NULL) != 0) return 3;
    kill(getpid(), number);
    for (int i = 0; i < 4096; ++i) {
      if (stack[i] != 0x5a) {
        printf("overrun\n");
        return 4;
      }
    }
    printf("survived\n");
  } else {
    return 2;
  }
  return 0;
}
