#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>

#include <cstdint>
#include <cstring>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/probe.h"
#include "base/spawn.h"
#include "base/syscall.h"

namespace mtrace {

namespace {
constexpr char kSeveral = 0;
}
MTRACE_HOT constinit const char* g_single_threaded = &kSeveral;

namespace base {

uint32_t process_id() { return static_cast<uint32_t>(call(SYS_getpid)); }
uint32_t thread_id() { return static_cast<uint32_t>(call(SYS_gettid)); }

bool fence_all_threads() {
  if (may_be_filtered()) return false;
  const auto fence = [] { return call(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0); };
  long result = fence();
  if (result == -EPERM) {  // not registered yet
    call(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
    result = fence();
  }
  return result == 0;
}

bool thread_exists(uint32_t pid, uint32_t tid) { return call(SYS_tgkill, pid, tid, 0) != -ESRCH; }
bool task_exists(uint32_t tid) { return call(SYS_tkill, tid, 0) != -ESRCH; }

size_t read_link(const char* path, char* buffer, size_t capacity) {
  if (capacity == 0) return 0;
  const long got = call(SYS_readlinkat, AT_FDCWD, path, buffer, capacity);
  const size_t length = failed(got) || static_cast<size_t>(got) >= capacity ? 0 : got;
  buffer[length] = '\0';
  return length;
}

size_t program_path(char* buffer, size_t capacity) {
  // Emulators answer for the first path alone, which names nothing once the first thread has ended.
  const size_t length = read_link("/proc/self/exe", buffer, capacity);
  return length != 0 ? length : read_link("/proc/thread-self/exe", buffer, capacity);
}

static size_t read_opened(long fd, char* buffer, size_t capacity) {
  size_t length = 0;
  if (!failed(fd)) {
    while (length + 1 < capacity) {
      const long got = call(SYS_read, fd, buffer + length, capacity - 1 - length);
      if (got == -EINTR) continue;
      if (got <= 0) break;
      length += got;
    }
    call(SYS_close, fd);
  }
  if (capacity > 0) buffer[length] = '\0';
  return length;
}

size_t read_file(const char* path, char* buffer, size_t capacity) {
  size_t length = 0;
  with_own_files([&] {
    const long fd = call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    length = read_opened(fd, buffer, capacity);
  });
  return length;
}

size_t working_directory(char* buffer, size_t capacity) {
  const long got = call(SYS_getcwd, buffer, capacity);  // length with the terminator
  // "(unreachable)..." is the kernel's answer for a directory outside the root.
  if (failed(got) || got < 2 || buffer[0] != '/') return 0;
  return got - 1;
}

// The number after `name` in a text; -1: no such line.
static int number_on_line(const char* text, const char* name) {
  const char* at = strstr(text, name);
  if (at == nullptr) return -1;
  int value = 0;
  for (at += strlen(name); *at >= '0' && *at <= '9'; ++at) value = value * 10 + (*at - '0');
  return value;
}

int seccomp_filters(const char* status) {
  char text[4096];
  if (read_file(status, text, sizeof text) == 0) return -1;
  // Linux reports the number of filters since 5.9; the mode is 0, 1 (strict) or 2.
  const int mode = number_on_line(text, "\nSeccomp:\t");
  const int filters = number_on_line(text, "\nSeccomp_filters:\t");
  return filters > 0 ? filters : mode;
}

void host_name(char* buffer, size_t capacity) {
  utsname names = {};
  if (failed(call(SYS_uname, &names))) {  // a filter forbids it (base/filters.h)
    read_file("/proc/sys/kernel/hostname", names.nodename, sizeof names.nodename);
    names.nodename[strcspn(names.nodename, "\n")] = '\0';
  }
  strncpy(buffer, names.nodename, capacity - 1);
  buffer[capacity - 1] = '\0';
}

namespace {
// Reads the vDSO where possible, without entering the kernel: waits end by this clock, also where a
// filter forbids clock_gettime(2).
uint64_t clock(int which) {
  timespec now = {};
  internal::get_time(which, &now);
  return internal::nanoseconds(now);
}
}  // namespace

uint64_t real_time() { return clock(CLOCK_REALTIME); }
uint64_t monotonic_time() { return clock(CLOCK_MONOTONIC); }

uint64_t block_signals() {
  // Not SIGSYS: where a filter of system calls raises it, a blocked one ends the process.
  const uint64_t all = ~(uint64_t{1} << (SIGSYS - 1));
  uint64_t old = 0;
  call(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, &all, &old, sizeof old);
  return old;
}

bool is_pending(int signal) {
  uint64_t pending = 0;
  call(SYS_rt_sigpending, &pending, sizeof pending);
  return (pending >> (signal - 1) & 1) != 0;
}

void restore_signals(uint64_t mask) {
  call(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, &mask, nullptr, sizeof mask);
}

void send_again(int signal, const siginfo_t* information) {
  const uint32_t pid = process_id();
  const uint32_t tid = thread_id();
  if (call(SYS_rt_tgsigqueueinfo, pid, tid, signal, information) != 0) {
    // The process was to end by this signal: a filter that ends it here does the same.
    call_unasked(SYS_tgkill, pid, tid, signal);
  }
}

void discard_signal(int signal) {
  const uint64_t set = uint64_t{1} << (signal - 1);
  const timespec zero = {};
  call(SYS_rt_sigtimedwait, &set, nullptr, &zero, sizeof set);
}

void wait_on(const uint32_t& word, uint32_t value, uint64_t nanoseconds) {
  const timespec limit = {static_cast<time_t>(nanoseconds / 1'000'000'000u),
                          static_cast<long>(nanoseconds % 1'000'000'000u)};
  const long result = call(SYS_futex, &word, FUTEX_WAIT, value, &limit, nullptr, 0);
  // A filter of system calls refuses it: the caller's loop would not let others run.
  if (failed(result) && result != -EAGAIN && result != -EINTR && result != -ETIMEDOUT) yield();
}

void wake_all(uint32_t& word) {
  call(SYS_futex, &word, FUTEX_WAKE, 0x7fffffff, nullptr, nullptr, 0);
}

void wake_all_as_helper(uint32_t& word) {
  call_as_helper(SYS_futex, &word, FUTEX_WAKE, 0x7fffffff, nullptr, nullptr, 0);
}

void yield() { call(SYS_sched_yield); }

void exit_group(int status) {
  for (;;) call_unasked(SYS_exit_group, status);
}

uint64_t* map_wiped_on_fork() {
  constexpr size_t kPage = 4096;
  void* page = map_memory(kPage);
  if (page == nullptr) return nullptr;
  if (failed(call(SYS_madvise, page, kPage, MADV_WIPEONFORK))) {
    unmap_memory(page, kPage);
    return nullptr;
  }
  return static_cast<uint64_t*>(page);
}

}  // namespace base
}  // namespace mtrace

// The trampoline (sa_restorer) to which handlers return. Debuggers know the two instructions by
// their bytes.
asm(R"(
  .pushsection .text
  .globl mtrace_return_from_signal
  .hidden mtrace_return_from_signal
  .type mtrace_return_from_signal, @function
mtrace_return_from_signal:
)" MTRACE_RETURN_FROM_SIGNAL R"(  .size mtrace_return_from_signal, . - mtrace_return_from_signal
  .popsection
)");
extern "C" [[gnu::visibility("hidden")]] void mtrace_return_from_signal();

namespace mtrace::base {
namespace {

constexpr uint64_t kRestorer = 0x04000000;  // SA_RESTORER

// The kernel's struct sigaction.
struct Action {
  void (*handler)(int);
  uint64_t flags;
  void (*restorer)();
  uint64_t mask;
};

}  // namespace

bool catch_by_default(int signal, void (*handler)(int)) {
  Action now = {};
  if (failed(call(SYS_rt_sigaction, signal, nullptr, &now, sizeof now.mask))) return false;
  if (now.handler != SIG_DFL) return false;
  const Action ours = {handler, uint64_t{SA_RESTART} | SA_ONSTACK | kRestorer,
                       mtrace_return_from_signal, ~uint64_t{0}};
  return !failed(call(SYS_rt_sigaction, signal, &ours, nullptr, sizeof ours.mask));
}

}  // namespace mtrace::base
