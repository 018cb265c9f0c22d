// A program that gives up system calls by a filter of seccomp(2), while it has work to do that
// asks for reports. Arguments: how the filter is added, what it does with the calls that it stops,
// and which those are. Ends with status 5 when the filter stopped the program's own calls as it
// would have without the library.
#include <dlfcn.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <ucontext.h>

#include <cstddef>
#include <vector>

#include "truth.h"

namespace {

void* kept[64];
int held;
volatile int trapped;

}  // namespace

extern "C" {
KEEPS(before, kept[held++], 1000)
KEEPS(after, kept[held++], 300)
}

namespace {

constexpr unsigned kAllow = SECCOMP_RET_ALLOW;

// What a sandbox does: answers for the kernel.
void answer(int, siginfo_t*, void* context) {
  trapped = trapped + 1;
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RAX] = -EACCES;
}

std::vector<sock_filter> g_code;

void put_filter(const std::vector<int>& listed, unsigned then, unsigned otherwise) {
  g_code = {sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
            sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
            sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
            sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const int number : listed) {
    g_code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 1));
    g_code.push_back(sock_filter BPF_STMT(BPF_RET | BPF_K, then));
  }
  g_code.push_back(sock_filter BPF_STMT(BPF_RET | BPF_K, otherwise));
}

long raw_seccomp(long flags, const sock_fprog* program) {
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(static_cast<long>(SYS_seccomp)),
                 "D"(static_cast<long>(SECCOMP_SET_MODE_FILTER)), "S"(flags), "d"(program)
               : "rcx", "r11", "memory");
  return result;
}

void add_filter(const char* how) {
  sock_fprog program = {static_cast<unsigned short>(g_code.size()), g_code.data()};
  auto is = [&](const char* name) { return strcmp(how, name) == 0; };
  check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges");
  // As programs do that ask what the kernel can.
  check(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, nullptr) == -1 && errno == EFAULT, "no filter");
  long result = -1;
  if (is("prctl")) {
    result = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
  } else if (is("seccomp")) {
    result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
  } else if (is("tsync")) {
    result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
  } else if (is("indirect")) {
    result = syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
  } else if (is("raw")) {
    result = raw_seccomp(0, &program);
  }
  check(result == 0, "filter");
}

pthread_barrier_t g_step;

// Adds the filter for itself alone, for all threads, or for those that it makes.
void* another_thread(void* how) {
  add_filter(static_cast<const char*>(how));
  pthread_barrier_wait(&g_step);
  pthread_barrier_wait(&g_step);  // meanwhile main has asked for a report
  return nullptr;
}

void report_by_signal() {
  if (truth_signals) raise(SIGUSR1);
}

int report_by_api() {
  auto* report = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "mtrace_report"));
  return report != nullptr ? report() : -2;
}

void expect_stopped(unsigned then) {
  const int fd = open("/dev/null", O_RDONLY);
  switch (then) {
    case SECCOMP_RET_TRAP:
      check(fd == -1 && errno == EACCES && trapped == 1, "trapped once, and answered");
      break;
    case SECCOMP_RET_TRACE:
    case SECCOMP_RET_USER_NOTIF:
      check(fd == -1 && errno == ENOSYS, "nobody answers");
      break;
    default:
      check(fd == -1 && errno == EPERM, "refused");
  }
}

unsigned action_of(const char* name) {
  auto is = [&](const char* other) { return strcmp(name, other) == 0; };
  if (is("trap")) return SECCOMP_RET_TRAP;
  if (is("kill")) return SECCOMP_RET_KILL_PROCESS;
  if (is("kill_thread")) return SECCOMP_RET_KILL_THREAD;
  if (is("trace")) return SECCOMP_RET_TRACE;
  if (is("notify")) return SECCOMP_RET_USER_NOTIF;
  return SECCOMP_RET_ERRNO | EPERM;
}

// What a browser leaves its renderer: memory, its descriptors, time. It traps all else.
const std::vector<int> kRenderer = {
    SYS_brk,    SYS_clock_gettime, SYS_close,          SYS_exit,         SYS_exit_group,
    SYS_futex,  SYS_getpid,        SYS_gettid,         SYS_madvise,      SYS_mmap,
    SYS_munmap, SYS_mprotect,      SYS_read,           SYS_write,        SYS_rt_sigaction,
    SYS_fstat,  SYS_rt_sigreturn,  SYS_rt_sigprocmask, SYS_gettimeofday, SYS_tgkill};

// Children that lock themselves up at once, as sshd's do that talk to whom nobody knows yet.
int work_in_children() {
  int hurt = 0;
  for (pollfd input = {0, POLLIN, 0}; poll(&input, 1, 0) == 0;) {
    const pid_t child = fork();
    if (child == 0) {
      site_before();
      add_filter("prctl");
      for (int k = 0; k < 20; ++k) {
        void* block = malloc(sized(100));
        usleep(500);
        free(block);
      }
      _exit(5);
    }
    const int status = reap(child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 5) ++hurt;
  }
  printf("%d hurt\n", hurt);
  return 5;
}

// In calls that the kernel continues by restart_syscall(2), one after the other.
int wait_in_turn() {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t never = PTHREAD_COND_INITIALIZER;
  int word = 0;
  pthread_mutex_lock(&mutex);
  for (pollfd input = {0, POLLIN, 0}; poll(&input, 1, 20) == 0;) {
    const timespec pause = {0, 20000000};
    check(nanosleep(&pause, nullptr) == 0, "nanosleep");
    check(syscall(SYS_futex, &word, FUTEX_WAIT, 0, &pause) == -1 && errno == ETIMEDOUT, "futex");
    timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += end.tv_nsec >= 980000000 ? 1 : 0;
    end.tv_nsec = (end.tv_nsec + 20000000) % 1000000000;
    check(pthread_cond_timedwait(&never, &mutex, &end) == ETIMEDOUT, "condition");
  }
  return 5;
}

// The action that the program set, or found, is the one that it sees.
void expect_default() {
  struct sigaction seen;
  check(sigaction(SIGUSR1, nullptr, &seen) == 0 && seen.sa_handler == SIG_DFL, "sees the default");
}

// For somebody who asks from outside.
int serve() {
  print("ready");
  char byte;
  while (read(0, &byte, 1) == 1) site_after();
  return 5;
}

int work(unsigned then, bool opens) {
  report_by_signal();
  site_after();
  if (truth_signals) printf("api %d\n", report_by_api());
  if (opens) expect_stopped(then);
  fflush(stdout);
  return 5;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  truth_signals = getenv("LD_PRELOAD") != nullptr;
  auto is = [&](int i, const char* name) { return strcmp(argv[i], name) == 0; };
  const unsigned then = action_of(argv[2]);
  struct sigaction action = {};
  action.sa_sigaction = answer;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSYS, &action, nullptr);
  site_before();
  if (is(2, "forks")) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
  }
  report_by_signal();
  if (is(1, "none")) {
    return serve();
  }
  if (is(3, "renderer")) {
    puts("going in");  // not the first calls of stdio under the filter
    fflush(stdout);
    put_filter(kRenderer, kAllow, then);
  } else if (is(3, "getpid")) {
    put_filter({SYS_getpid}, then, kAllow);
  } else if (is(3, "open")) {
    put_filter({SYS_openat, SYS_open}, then, kAllow);
  } else if (is(3, "restart")) {
    put_filter({SYS_restart_syscall}, then, kAllow);
  } else if (is(3, "sandbox")) {
    put_filter({SYS_rt_sigreturn, SYS_memfd_create}, then, kAllow);
  } else {
    put_filter({SYS_renameat2, SYS_rename, SYS_linkat}, then, kAllow);
  }
  if (is(1, "sleeps")) {
    add_filter(argv[4]);
    print("ready");
    return wait_in_turn();
  }
  if (is(1, "children")) return work_in_children();
  if (is(1, "becomes")) {
    add_filter("prctl");
    execl(argv[0], argv[0], "none", "-", "-", nullptr);
    return 1;
  }
  const bool opens =
      is(3, "open") && then != SECCOMP_RET_KILL_PROCESS && then != SECCOMP_RET_KILL_THREAD;
  if (is(1, "thread_of_its_own") || is(1, "thread_for_all")) {
    pthread_barrier_init(&g_step, nullptr, 2);
    pthread_t thread;
    const char* how = is(1, "thread_for_all") ? "tsync" : "prctl";
    pthread_create(&thread, nullptr, another_thread, const_cast<char*>(how));
    pthread_barrier_wait(&g_step);
    const int status = work(then, opens && is(1, "thread_for_all"));
    pthread_barrier_wait(&g_step);
    pthread_join(thread, nullptr);
    return status;
  }
  if (is(1, "child")) {
    add_filter("prctl");
    const pid_t child = fork();
    if (child == 0) exit(work(then, opens));
    const int status = reap(child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
  }
  if (is(1, "vfork_child")) {
    const pid_t child = vfork();
    if (child == 0) {
      add_filter("prctl");
      _exit(0);
    }
    waitpid(child, nullptr, 0);
    return work(then, false);
  }
  if (is(1, "waits")) {
    add_filter(argv[4]);
    if (!is(4, "raw")) expect_default();
    return serve();
  }
  add_filter(argv[1]);
  return work(then, opens);
}
