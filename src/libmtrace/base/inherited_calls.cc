#include "base/inherited_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <cstddef>

#include "base/atomic.h"
#include "base/early_signal.h"
#include "base/process.h"
#include "base/spawn.h"
#include "base/syscall.h"

namespace mtrace::sys {
namespace {

constexpr size_t kStack = 16 * 1024;
constexpr unsigned kMostChildren = 16;  // then the calls left count as ending the process
constexpr uint32_t kNumbers = 512;

using Calls = uint64_t[kNumbers / 64];

Calls g_ends;

// Calls that the loader and libc's start make, and those that counting and a report written in
// place need. A program under a filter that ends it at one of these would not come to its first
// line, and has no use for this library.
constexpr uint16_t kPlain[] = {
    SYS_openat,       SYS_read,          SYS_pread64,      SYS_fstat,          SYS_newfstatat,
    SYS_close,        SYS_mmap,          SYS_munmap,       SYS_prlimit64,      SYS_getrandom,
    SYS_write,        SYS_getpid,        SYS_gettid,       SYS_tgkill,         SYS_futex,
    SYS_madvise,      SYS_readlinkat,    SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_getcwd,
    SYS_rt_sigreturn, SYS_clock_gettime,
};

struct Trial {
  uint16_t number;
  long words[5];
};

constexpr long kNoFile = -1;
// Arguments that a filter may check are those that the library uses; pointers and descriptors are
// invalid, so that nothing is done.
constexpr Trial kTrials[] = {
    // First the calls that keep a child from leaving a core file or waiting for ever: see
    // bound_this_child().
    {SYS_prlimit64, {0, RLIMIT_CORE, 0, 0}},
    {SYS_rt_sigaction, {SIGALRM, 0, 0, 8}},
    {SYS_rt_sigprocmask, {SIG_BLOCK, 0, 0, 8}},
    {SYS_setitimer, {ITIMER_REAL, 0, 0}},
    {SYS_wait4, {-1, 0, __WALL | WNOHANG, 0}},
    {SYS_waitid, {-1, 0, 0, WEXITED | WNOHANG | WNOWAIT, 0}},
    {SYS_rt_sigreturn, {}},
    {SYS_openat, {AT_FDCWD, 0, O_RDONLY | O_CLOEXEC}},
    {SYS_openat, {AT_FDCWD, 0, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600}},
    {SYS_openat, {AT_FDCWD, 0, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600}},
    {SYS_read, {kNoFile}},
    {SYS_write, {kNoFile}},
    {SYS_pread64, {kNoFile}},
    {SYS_pwrite64, {kNoFile}},
    {SYS_lseek, {kNoFile, 0, SEEK_SET}},
    {SYS_fstat, {kNoFile}},
    {SYS_newfstatat, {AT_FDCWD}},
    {SYS_fchmod, {kNoFile, 0600}},
    {SYS_fchown, {kNoFile, -1, -1}},
    {SYS_fcntl, {kNoFile, F_DUPFD_CLOEXEC, 3}},
    {SYS_fallocate, {kNoFile}},
    {SYS_getdents64, {kNoFile, 0, 0}},
    {SYS_close, {kNoFile}},
    {SYS_renameat2, {AT_FDCWD, 0, AT_FDCWD, 0, RENAME_NOREPLACE}},
    {SYS_linkat, {AT_FDCWD, 0, AT_FDCWD}},
    {SYS_unlinkat, {AT_FDCWD}},
    {SYS_faccessat, {AT_FDCWD}},
    {SYS_readlinkat, {AT_FDCWD}},
    {SYS_getcwd, {0, 0}},
    {SYS_memfd_create, {0, 1 /* MFD_CLOEXEC */}},
    {SYS_mmap, {0, 0, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1}},
    {SYS_munmap, {0, 0}},
    {SYS_madvise, {0, 0, MADV_NOHUGEPAGE}},
    {SYS_membarrier, {MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0}},
    {SYS_msync, {0, 0, MS_ASYNC}},
    {SYS_process_vm_readv, {0}},
    {SYS_futex, {0, FUTEX_WAKE, 0}},
    {SYS_getpid, {}},
    {SYS_gettid, {}},
    {SYS_uname, {0}},
    {SYS_clock_gettime, {0, 0}},
    {SYS_clock_getres, {0, 0}},
    {SYS_sched_yield, {}},
    {SYS_getrandom, {0, 0, 0}},
    {SYS_prctl, {PR_GET_DUMPABLE}},
    {SYS_rt_sigpending, {0, 8}},
    {SYS_rt_sigtimedwait, {0, 0, 0, 8}},
    {SYS_rt_tgsigqueueinfo, {0, 0, 0, 0}},
    {SYS_tgkill, {0, 0, 0}},
    {SYS_tkill, {0, 0}},
    {SYS_kill, {0x7fffffff, 0}},
    // Calls that start the resolver.
    {SYS_close_range, {1, 0, 0}},
    {SYS_unshare, {0}},
    {SYS_setsid, {}},
    {SYS_setpriority, {-1, 0, 0}},
    {SYS_dup, {kNoFile}},
    {SYS_dup3, {kNoFile, 0, 0}},
    {SYS_execve, {0, 0, 0}},
    // Last: this call makes the children that try the others.
    {SYS_clone, {}},
};
constexpr uint32_t kCount = sizeof kTrials / sizeof kTrials[0];

constexpr uint32_t kBounds = 4;  // the first ones: see bound_this_child()

// Memory that parent and children share.
struct Shared {
  uint32_t trial;  // under way, or next
  Calls ends;      // found so far
  alignas(16) char stack[kStack];
};

// Prevents a core file, also into a pipe, and ends a wait for an answer after a second.
void bound_this_child() {
  const rlimit64 core = {1, 1};
  struct {
    void* handler;
    unsigned long flags;
    void* restorer;
    uint64_t mask;
  } standard = {};
  const uint64_t others = ~(uint64_t{1} << (SIGALRM - 1));
  const itimerval second = {{0, 0}, {1, 0}};
  call(SYS_prlimit64, 0, RLIMIT_CORE, &core, nullptr);
  call(SYS_rt_sigaction, SIGALRM, &standard, nullptr, sizeof standard.mask);
  call(SYS_rt_sigprocmask, SIG_SETMASK, &others, nullptr, sizeof others);
  call(SYS_setitimer, ITIMER_REAL, &second, nullptr);
}

void note_end(Calls& calls, uint32_t number) { calls[number / 64] |= uint64_t{1} << number % 64; }

// Replaces g_ends, which each call of the library reads, word by word: a call needs only one.
void take_over(const Calls& calls) {
  for (uint32_t i = 0; i < kNumbers / 64; ++i) store(g_ends[i], calls[i]);
}

// Tries rt_sigreturn(2), by which signal handlers return. This child has its own handlers.
void return_from_handler() {
  struct {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)();
    uint64_t mask;
  } action = {[](int) {}, kRestorer, mtrace_return_from_signal, 0};
  const uint64_t others = ~(uint64_t{1} << (SIGUSR1 - 1) | uint64_t{1} << (SIGALRM - 1));
  call(SYS_rt_sigaction, SIGUSR1, &action, nullptr, sizeof action.mask);
  call(SYS_rt_sigprocmask, SIG_SETMASK, &others, nullptr, sizeof others);
  call(SYS_tgkill, call(SYS_getpid), call(SYS_gettid), SIGUSR1);
}

int try_calls(void* argument) {
  auto& shared = *static_cast<Shared*>(argument);
  bool bounded = false;
  take_over(shared.ends);  // in this copy of the memory
  for (uint32_t i = load(shared.trial); i < kCount; ++i) {
    if (i >= kBounds && !bounded) bound_this_child();
    bounded |= i >= kBounds;
    store(shared.trial, i);
    const Trial& trial = kTrials[i];
    const long* w = trial.words;
    if (trial.number == SYS_rt_sigreturn) {
      return_from_handler();
    } else if (trial.number == SYS_clone) {
      try_own_files();
    } else {
      call(trial.number, w[0], w[1], w[2], w[3], w[4], 0);
    }
  }
  store(shared.trial, kCount);
  return 0;
}

}  // namespace

void assume_inherited_calls() {
  Calls calls = {};
  for (const Trial& trial : kTrials) note_end(calls, trial.number);
  note_end(calls, SYS_clone);
  for (const uint16_t number : kPlain) calls[number / 64] &= ~(uint64_t{1} << number % 64);
  take_over(calls);
}

Tried try_inherited_calls() {
  const long memory =
      raw_mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (failed(memory)) return Tried::kNot;
  Shared& shared = *reinterpret_cast<Shared*>(memory);
  const uint64_t mask = block_signals();
  uint64_t& word = g_ends[SYS_clone / 64];
  store(word, load(word) & ~(uint64_t{1} << SYS_clone % 64));
  auto tried = Tried::kNot;
  for (unsigned children = 0; load(shared.trial) < kCount; ++children) {
    const long child = children < kMostChildren
                           ? start_copy(Helper::kTrial, shared.stack + kStack, try_calls, &shared)
                           : -EAGAIN;
    if (failed(child) && children == 0) break;
    if (tried == Tried::kNot) tried = Tried::kAllowed;
    const uint32_t last = load(shared.trial);
    for (uint32_t i = last; i < (failed(child) ? kCount : last + 1) && i < kCount; ++i) {
      note_end(shared.ends, kTrials[i].number);
      store(shared.trial, i + 1);
      tried = Tried::kSomeEnd;
    }
    if (!failed(child)) collect(Helper::kTrial, true);
  }
  if (tried != Tried::kNot) take_over(shared.ends);
  restore_signals(mask);
  unmap_memory(&shared, sizeof(Shared));
  return tried;
}

bool ends_by_inheritance(uint32_t number) {
  return number < kNumbers && (load(g_ends[number / 64]) >> number % 64 & 1) != 0;
}

}  // namespace mtrace::sys
