// A thread that asks for 40 reports, and one that closes a file of each, once, when it meets it: it
// closes whatever it has not opened itself. A filter from before the start forbids clone(2) with
// CLONE_THREAD; the program's threads are made by clone3(2).
// Prints how many it has closed.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "new_stacks.h"
#include "truth.h"

namespace {

constexpr int kMost = 1000;
constexpr int kEnough = 5;
int g_closed = 0;
int g_report = 0;  // under way; -1: no more
int report_now() { return __atomic_load_n(&g_report, __ATOMIC_ACQUIRE); }

void* kept[2048];
int asked = 0;

void* ask(void*) {
  for (int i = 1; i <= kMost && __atomic_load_n(&g_closed, __ATOMIC_RELAXED) < kEnough; ++i) {
    __atomic_store_n(&g_report, i, __ATOMIC_RELEASE);
    for (unsigned k = 0; k < 2048; ++k) {  // a report takes its time
      free(kept[k]);
      kept[k] = allocate(k, 11);
    }
    if (getenv("LD_PRELOAD") != nullptr) raise(SIGUSR1);
    ++asked;
  }
  __atomic_store_n(&g_report, -1, __ATOMIC_RELEASE);
  return nullptr;
}

void forbid_threads() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {sizeof code / sizeof code[0], code};
  check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "privileges");
  check(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0, "filter");
}

// One that has no name, or is being written.
bool is_reports_file(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && (info.st_nlink == 0 || info.st_size > 0);
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 1) {
    forbid_threads();
    execl(arguments[0], arguments[0], "filtered", nullptr);
    return 1;
  }
  // The library tries system calls only in a program that has started a process.
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  __atomic_store_n(&g_report, 1, __ATOMIC_RELEASE);
  pthread_t thread;
  check(pthread_create(&thread, nullptr, ask, nullptr) == 0, "thread");
  for (int met = 0, now; (now = report_now()) != -1;) {
    for (int fd = 3; fd < 16 && met != now; ++fd) {
      if (!is_reports_file(fd) || close(fd) != 0) continue;
      met = now;
      __atomic_fetch_add(&g_closed, 1, __ATOMIC_RELAXED);
    }
  }
  pthread_join(thread, nullptr);
  printf("%d reports, %d closed\n", asked, g_closed);
  return 0;
}
