// Processes in numbers and at bad moments, one a mode (argument 1). Sites as in truth.h.
#include <dirent.h>
#include <spawn.h>

#include <atomic>

#include "truth.h"

extern char** environ;

extern "C" {
GIVES(child, (), malloc(sized(123)))
GIVES(parent, (), malloc(sized(1000)))
}

namespace {

std::atomic<bool> stop;
std::atomic<int> good;
void* volatile kept;

void report() {
  if (truth_signals) kill(getpid(), SIGUSR1);
}

int children() {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/children", static_cast<int>(getpid()));
  const int fd = open(path, O_RDONLY);
  char text[4096];
  const ssize_t size = read(fd, text, sizeof text);
  close(fd);
  int count = 0;
  for (ssize_t i = 0; i < size; ++i) count += text[i] == ' ';
  return count;
}

void* allocate_on(void*) {
  void* blocks[32] = {};
  for (unsigned seed = 7; !stop; seed = seed * 1664525u + 1013904223u) {
    void*& block = blocks[seed >> 27];
    free(block);
    block = malloc(sized(1 + (seed >> 12) % 3000));
  }
  for (void* block : blocks) free(block);
  return nullptr;
}

// One child in each of the ways there are; each but those that run another program allocates.
void one_child(int number, char* self) {
  pid_t child = -1;
  switch (number % 6) {
    case 0:
    case 1:
      child = fork();
      break;
    case 2:
      child = _Fork();
      break;
    case 3:
      child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
      break;
    case 4:
      child = vfork();
      if (child == 0) _exit(0);
      break;
    default: {
      char leaf[] = "leaf";
      char* arguments[] = {self, leaf, nullptr};
      if (posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments, environ) != 0) return;
    }
  }
  if (child == 0) {
    // After fork alone libc has seen to the locks of malloc.
    if (number % 6 < 2) kept = site_child();
    report();
    _exit(0);
  }
  int status = -1;
  if (waitpid(child, &status, 0) == child && status == 0) ++good;
}

int run_storm(char* self, int rounds) {
  static char* program = self;
  static int number = rounds;
  print("ready");
  pthread_t workers[2];
  pthread_t forkers[4];
  for (pthread_t& thread : workers) pthread_create(&thread, nullptr, allocate_on, nullptr);
  for (pthread_t& thread : forkers) {
    pthread_create(
        &thread, nullptr,
        [](void*) -> void* {
          for (int i = 0; i < number; ++i) one_child(i, program);
          return nullptr;
        },
        nullptr);
  }
  for (pthread_t thread : forkers) pthread_join(thread, nullptr);
  stop = true;
  for (pthread_t thread : workers) pthread_join(thread, nullptr);
  printf("good %d\n", good.load());
  errno = 0;
  const pid_t none = wait(nullptr);
  printf("wait %d errno %d\n", static_cast<int>(none), errno);
  return 0;
}

// Becomes another program while its report is being given names. What is no child of this program
// must be none of the next one either.
int run_exec(char* self, const char* how) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  kept = site_parent();
  report();
  if (strcmp(how, "missing") == 0) {
    // Nothing has happened when it fails.
    errno = 0;
    execl("/nowhere/at/all", "nothing", nullptr);
    printf("errno %d children %d\n", errno, children());
    kept = site_parent();
    report();
    return 0;
  }
  char after[] = "after";
  char* arguments[] = {self, after, nullptr};
  if (strcmp(how, "execve") == 0) execve(self, arguments, environ);
  if (strcmp(how, "execv") == 0) execv(self, arguments);
  if (strcmp(how, "execvp") == 0) execvp(self, arguments);
  if (strcmp(how, "execvpe") == 0) execvpe(self, arguments, environ);
  if (strcmp(how, "execl") == 0) execl(self, self, after, nullptr);
  if (strcmp(how, "execlp") == 0) execlp(self, self, after, nullptr);
  if (strcmp(how, "execle") == 0) execle(self, self, after, nullptr, environ);
  if (strcmp(how, "fexecve") == 0) fexecve(open(self, O_RDONLY | O_CLOEXEC), arguments, environ);
  if (strcmp(how, "execveat") == 0) execveat(AT_FDCWD, self, arguments, environ, 0);
  if (strcmp(how, "thread") == 0) {
    static char** given = arguments;
    pthread_t thread;
    pthread_create(
        &thread, nullptr,
        [](void*) -> void* {
          execv(given[0], given);
          return nullptr;
        },
        nullptr);
    pthread_join(thread, nullptr);
  }
  return 3;
}

int run_after() {
  sigset_t pending;
  sigpending(&pending);
  errno = 0;
  const pid_t got = waitpid(-1, nullptr, __WALL | WNOHANG);
  printf("after: wait %d errno %d children %d SIGCHLD %d\n", static_cast<int>(got), errno,
         children(), sigismember(&pending, SIGCHLD));
  return 0;
}

// A child that lives on when its parent is gone, and reports then.
int run_outlive() {
  int pipe_of_parent[2];
  if (pipe(pipe_of_parent) != 0) return 3;
  kept = site_parent();
  const pid_t child = fork();
  if (child == 0) {
    close(pipe_of_parent[1]);
    char byte;
    if (read(pipe_of_parent[0], &byte, 1) != 0) _exit(4);  // until the parent has ended
    kept = site_child();
    report();
    exit(0);
  }
  printf("child %d\n", static_cast<int>(child));
  fflush(stdout);
  _exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  truth_signals = getenv("LD_PRELOAD") != nullptr;
  auto is = [&](const char* name) { return strcmp(mode, name) == 0; };
  if (is("leaf")) return site_child() == nullptr;
  if (is("after")) return run_after();
  if (is("storm") && argc > 2) return run_storm(argv[0], atoi(argv[2]));
  if (is("exec") && argc > 2) return run_exec(argv[0], argv[2]);
  if (is("outlive")) return run_outlive();
  return 2;
}
