// What a program may take from itself, one a mode (argument 1), and then it goes on allocating:
// system calls, descriptors, its root. Prints "fine" at its end. Sites as in truth.h.
#include <dlfcn.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstddef>
#include <vector>

#include "truth.h"

namespace {

void* kept[256];
int held;

}  // namespace

extern "C" {
KEEPS(before, kept[held++], 1000)
KEEPS(after, kept[held++], 300)
SITE void site_churn() {
  for (int i = 0; i < 100000; ++i) free(malloc(sized(100)));
}
}

namespace {

void report() {
  if (truth_signals) raise(SIGUSR1);
}

// A filter of seccomp(2) that treats the listed system calls in one way and all others in another.
void install_filter(const std::vector<int>& listed, unsigned then, unsigned otherwise,
                    bool by_prctl) {
  std::vector<sock_filter> code;
  code.push_back(sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  for (const int number : listed) {
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 1));
    code.push_back(sock_filter BPF_STMT(BPF_RET | BPF_K, then));
  }
  code.push_back(sock_filter BPF_STMT(BPF_RET | BPF_K, otherwise));
  sock_fprog program = {static_cast<unsigned short>(code.size()), code.data()};
  check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges");
  if (by_prctl) {
    check(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0, "filter");
  } else {
    check(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0, "filter");
  }
}

const std::vector<int> kStartProcesses = {SYS_clone, SYS_clone3, SYS_fork,
                                          SYS_vfork, SYS_execve, SYS_execveat};

// No process may be started any more: an error, or death.
void run_without_processes(unsigned answer, bool by_prctl) {
  site_before();
  report();
  install_filter(kStartProcesses, answer, SECCOMP_RET_ALLOW, by_prctl);
  report();
  site_after();
  report();
  if (answer != SECCOMP_RET_KILL_PROCESS) {
    errno = 0;
    check(fork() == -1 && errno == EPERM, "fork is refused as before");
  }
}

SITE void in_depth(int depth) {
  if (depth == 0) {
    site_after();
  } else {
    in_depth(depth - 1);
  }
  NO_TAIL;
}

// What a network service leaves itself when it is about to read what strangers send: memory, time,
// its descriptors. Everything else is death, opening a file is an error.
void run_with_little(const char* path) {
  site_before();
  report();
  // A library in which nothing has allocated yet.
  void* plugin = dlopen(path, RTLD_NOW);
  check(plugin != nullptr, "plug-in");
  auto* plugin_allocate = reinterpret_cast<void* (*)(unsigned long)>(dlsym(plugin, "allocate"));
  // Not the first calls of stdio under the filter.
  print("going in");
  install_filter({SYS_openat, SYS_open}, SECCOMP_RET_ERRNO | EACCES, SECCOMP_RET_ALLOW, true);
  const std::vector<int> left = {
      SYS_brk,          SYS_clock_gettime, SYS_close,  SYS_exit,         SYS_exit_group,
      SYS_futex,        SYS_getpid,        SYS_gettid, SYS_gettimeofday, SYS_madvise,
      SYS_mmap,         SYS_mprotect,      SYS_mremap, SYS_munmap,       SYS_poll,
      SYS_ppoll,        SYS_read,          SYS_write,  SYS_writev,       SYS_rt_sigprocmask,
      SYS_rt_sigreturn, SYS_sched_yield,   SYS_open,   SYS_openat,       SYS_newfstatat,
      SYS_tgkill,       SYS_getrandom};
  install_filter(left, SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS, true);
  // From stacks never seen, over memory never looked at, from an object never met, and with a frame
  // pointer that points anywhere.
  in_depth(2000);
  int numbers[64];
  for (int i = 0; i < 64; ++i) numbers[i] = 64 - i;
  qsort(numbers, 64, sizeof(int), [](const void* a, const void* b) -> int {
    free(malloc(sized(10)));
    return *static_cast<const int*>(a) - *static_cast<const int*>(b);
  });
  kept[held++] = plugin_allocate(sized(200));
  asm volatile(
      "push %%rbp\n\tpush %%rbp\n\tmov $0x5a5a5a5a5000, %%rbp\n\t"
      "call *%0\n\tpop %%rbp\n\tpop %%rbp"
      :
      : "r"(&site_after)
      : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
  site_churn();
  report();  // cannot be written
  site_after();
}

// Only read, write, exit and return from a signal are left.
void run_with_nothing() {
  site_before();
  site_churn();
  check(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0, "strict");
  site_churn();
  constexpr char kLine[] = "fine\n";
  if (write(1, kLine, sizeof kLine - 1) < 0) syscall(SYS_exit, 1);
  syscall(SYS_exit, 0);
}

// A daemon that closes everything it did not open, and gives the numbers to files of its own.
void run_with_files_of_its_own(const char* directory) {
  site_before();
  report();
  fflush(stdout);
  const int out = fcntl(1, F_DUPFD, 200);
  check(syscall(SYS_close_range, 0, 199, 0) == 0, "closing all");
  for (int i = 0; i < 20; ++i) {
    char path[4200];
    snprintf(path, sizeof path, "%s/own-%d", directory, i);
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd != i) _exit(98);
  }
  for (int round = 0; round < 5; ++round) {
    site_after();
    report();
    for (int i = 0; i < 20; ++i) {
      if (write(i, "mine\n", 5) != 5) _exit(97);
    }
  }
  for (int i = 0; i < 20; ++i) {
    char text[64] = "";
    if (pread(i, text, sizeof text, 0) != 25) _exit(96);
    for (int round = 0; round < 5; ++round) {
      if (memcmp(text + 5 * round, "mine\n", 5) != 0) _exit(95);
    }
  }
  check(fcntl(20, F_GETFD) == -1, "no descriptor of another");
  dup2(out, 1);
}

void run_chroot(const char* directory) {
  site_before();
  report();
  check(chroot(directory) == 0 && chdir("/") == 0, "chroot");
  site_after();
  report();
}

// Whether the library is there, and what the kernel says of the signals.
void show_library() {
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[4400];
  bool mapped = false;
  while (fgets(line, sizeof line, maps) != nullptr) {
    mapped |= strstr(line, "libmtrace.so") != nullptr || strstr(line, "libBrokenLocale") != nullptr;
  }
  fclose(maps);
  printf("mapped %d\n", mapped);
  unsigned long caught = 0;
  FILE* status = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, status) != nullptr) sscanf(line, "SigCgt: %lx", &caught);
  fclose(status);
  printf("SIGTERM %d SIGUSR1 %d\n", (caught >> (SIGTERM - 1) & 1) != 0,
         (caught >> (SIGUSR1 - 1) & 1) != 0);
}

}  // namespace

void* wait_for(void* step) {
  pthread_barrier_wait(static_cast<pthread_barrier_t*>(step));
  return nullptr;
}

// May have no more descriptors than this number; "used": all that it may have are open. "threads":
// beside another thread; "wait": then waits for input.
void run_with_descriptors(const char* number, const char* how) {
  const bool threads = strcmp(how, "threads") == 0;
  pthread_t thread;
  pthread_barrier_t step;
  pthread_barrier_init(&step, nullptr, 2);
  if (threads) check(pthread_create(&thread, nullptr, wait_for, &step) == 0, "thread");
  site_before();
  const bool used = strcmp(number, "used") == 0;
  const rlim_t most = used ? 20 : strtoul(number, nullptr, 10);
  const rlimit few = {most, most};
  check(setrlimit(RLIMIT_NOFILE, &few) == 0, "limit");
  while (used && open("/dev/null", O_RDONLY) >= 0) continue;
  report();
  site_after();
  if (threads) wait_for(&step), pthread_join(thread, nullptr);
  char byte;
  if (strcmp(how, "wait") == 0)
    puts("none"), fflush(stdout), check(read(0, &byte, 1) == 1, "input");
}

void count_what_malloc_gives() {
  long mebibytes = 0;
  while (void* block = malloc(1 << 20)) {
    *static_cast<void**>(block) = nullptr;
    ++mebibytes;
  }
  printf("%ld\n", mebibytes);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  const char* where = argc > 2 ? argv[2] : "";
  truth_signals = getenv("LD_PRELOAD") != nullptr;
  auto is = [&](const char* name) { return strcmp(mode, name) == 0; };
  if (is("refused")) {
    run_without_processes(SECCOMP_RET_ERRNO | EPERM, true);
  } else if (is("killed")) {
    run_without_processes(SECCOMP_RET_KILL_PROCESS, true);
  } else if (is("killed_raw")) {
    run_without_processes(SECCOMP_RET_KILL_PROCESS, false);
  } else if (is("little")) {
    run_with_little(where);
  } else if (is("nothing")) {
    run_with_nothing();
  } else if (is("files")) {
    run_with_files_of_its_own(where);
  } else if (is("chroot")) {
    run_chroot(where);
  } else if (is("maps")) {
    show_library();
  } else if (is("descriptors")) {
    run_with_descriptors(where, argc > 3 ? argv[3] : "");
  } else if (is("most")) {
    count_what_malloc_gives();
  } else if (is("plain")) {
    site_before();
    report();
    site_after();
    report();
  } else {
    return 2;
  }
  puts("fine");
  return 0;
}
