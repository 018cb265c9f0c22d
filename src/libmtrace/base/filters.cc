#include "base/filters.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <cstddef>

#include "base/atomic.h"
#include "base/process.h"
#include "base/spawn.h"
#include "base/syscall.h"

namespace mtrace::base {

bool g_filtered = false;

namespace {

// ---- Filters that the program adds, and user dispatch.

uint32_t g_added = 0;    // filters that are in force or about to be, of any thread
uint32_t g_for_all = 0;  // of them, those for all threads

struct Thread {
  uint32_t filters;  // added or perhaps inherited; without those that another has added for all
  bool seen;
  bool dispatched;
  const volatile char* selector;
};
[[gnu::visibility("hidden")]] thread_local constinit Thread t_filters = {};

// A thread that was not seen yet may have inherited any filter.
bool has_added_filters() {
  return t_filters.seen ? (t_filters.filters | load(g_for_all)) != 0 : load(g_added) != 0;
}

// ---- Filters from before the start.

constexpr size_t kTrialStack = 16 * 1024;
constexpr unsigned kMostChildren = 16;  // then the calls left count as ending the process
constexpr uint32_t kNumbers = 512;

// Calls that the loader and libc's start make, and those that counting and a report written in
// place need (ftruncate: a ledger). Few programs under a filter that ends them at one of these
// would come to their first line.
constexpr uint16_t kPlain[] = {
    SYS_openat,        SYS_read,       SYS_pread64,    SYS_fstat,        SYS_newfstatat,
    SYS_close,         SYS_mmap,       SYS_munmap,     SYS_prlimit64,    SYS_getrandom,
    SYS_write,         SYS_getpid,     SYS_gettid,     SYS_tgkill,       SYS_futex,
    SYS_madvise,       SYS_readlinkat, SYS_ftruncate,  SYS_rt_sigaction, SYS_rt_sigprocmask,
    SYS_clock_gettime, SYS_getcwd,     SYS_exit_group,
};

struct Trial {
  uint16_t number;
  long words[4];
};

// All others, and those of the plain ones that not every program makes. Arguments that a filter may
// check are those that the library uses; pointers and descriptors are invalid, so that nothing is
// done.
constexpr long kNone = -1;
constexpr Trial kTrials[] = {
    {SYS_setitimer, {kNone}},  // first: see try_calls()
    {SYS_openat, {AT_FDCWD, 0, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600}},
    {SYS_openat, {AT_FDCWD, 0, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600}},
    {SYS_ftruncate, {kNone}},
    {SYS_getrandom, {}},
    {SYS_tgkill, {}},
    {SYS_futex, {0, FUTEX_WAKE, 0}},
    {SYS_madvise, {0, 0, MADV_NOHUGEPAGE}},
    {SYS_readlinkat, {AT_FDCWD}},
    {SYS_getcwd, {}},
    {SYS_wait4, {kNone, 0, __WALL | WNOHANG, 0}},
    {SYS_waitid, {kNone, 0, 0, WEXITED | WNOHANG | WNOWAIT}},
    {SYS_pwrite64, {kNone}},
    {SYS_lseek, {kNone, 0, SEEK_SET}},
    {SYS_fchmod, {kNone, 0600}},
    {SYS_fchown, {kNone, -1, -1}},
    {SYS_fcntl, {kNone, F_DUPFD_CLOEXEC, 3}},
    {SYS_fallocate, {kNone}},
    {SYS_getdents64, {kNone}},
    {SYS_renameat2, {AT_FDCWD, 0, AT_FDCWD, 0}},
    {SYS_linkat, {AT_FDCWD, 0, AT_FDCWD}},
    {SYS_unlinkat, {AT_FDCWD}},
    {SYS_faccessat, {AT_FDCWD}},
    {SYS_memfd_create, {0, 1 /* MFD_CLOEXEC */}},
    {SYS_mremap, {}},
    {SYS_mincore, {1}},
    {SYS_mlock2, {0, 0, MLOCK_ONFAULT}},
    {SYS_munlock, {}},
    {SYS_membarrier, {MEMBARRIER_CMD_PRIVATE_EXPEDITED}},
    {SYS_msync, {0, 0, MS_ASYNC}},
    {SYS_process_vm_readv, {}},
    {SYS_uname, {}},
    {SYS_clock_getres, {}},
    {SYS_sched_yield, {}},
    {SYS_prctl, {PR_GET_DUMPABLE}},
    {SYS_rt_sigpending, {0, 8}},
    {SYS_rt_sigtimedwait, {0, 0, 0, 8}},
    {SYS_rt_tgsigqueueinfo, {}},
    {SYS_tkill, {}},
    {SYS_kill, {0x7fffffff}},
    // Calls that start the resolver.
    {SYS_close_range, {1, 0, 0}},
    {SYS_unshare, {}},
    {SYS_setsid, {}},
    {SYS_setpriority, {kNone}},
    {SYS_dup, {kNone}},
    {SYS_dup3, {kNone}},
    {SYS_execve, {}},
    {SYS_clone, {CLONE_THREAD}},
};
constexpr uint32_t kCount = sizeof kTrials / sizeof kTrials[0];

enum State : uint32_t {
  kUnproven,  // clone(2) may end the process, so nothing is tried
  kProven,    // clone(2) is allowed: the next report begins with the trial
  kDone,      // or nothing to try
};
uint32_t g_trial = kDone;

int g_inherited = 0;
bool g_restricted = false;
uint64_t g_allowed[kNumbers / 64];  // bits by number, if restricted

// A call reads one word, so other threads may make calls meanwhile.
void allow(uint32_t number, bool allowed) {
  uint64_t& word = g_allowed[number / 64];
  const uint64_t bit = uint64_t{1} << number % 64;
  store(word, allowed ? load(word) | bit : load(word) & ~bit);
}

bool is_allowed(uint32_t number) {
  return !g_restricted ||
         (number < kNumbers && (load(g_allowed[number / 64]) >> number % 64 & 1) != 0);
}

// Memory that parent and children share.
struct Shared {
  uint32_t trial;  // under way, or next
  uint64_t ends;   // bit i: the call of kTrials[i] ends the process
  alignas(16) char stack[kTrialStack];
};
static_assert(kCount <= 64);

constexpr uint64_t kTimer = 1;  // bit of the first trial

// Leaves no core file, also no piped one, and waits for an answer at most a second.
int try_calls(void* argument) {
  auto& shared = *static_cast<Shared*>(argument);
  const rlimit64 core = {1, 1};
  const uint64_t others = ~(uint64_t{1} << (SIGALRM - 1));
  const uint64_t standard[4] = {};
  const itimerval second = {{0, 0}, {1, 0}};
  call_unasked(SYS_prlimit64, 0, RLIMIT_CORE, &core, nullptr);
  call_unasked(SYS_rt_sigaction, SIGALRM, standard, nullptr, sizeof others);
  call_unasked(SYS_rt_sigprocmask, SIG_SETMASK, &others, nullptr, sizeof others);
  if ((shared.ends & kTimer) == 0) call_unasked(SYS_setitimer, ITIMER_REAL, &second, nullptr, 0);
  for (uint32_t i = load(shared.trial); i < kCount; ++i) {
    store(shared.trial, i);
    const long* w = kTrials[i].words;
    call_unasked(kTrials[i].number, w[0], w[1], w[2], w[3]);
  }
  store(shared.trial, kCount);
  return 0;
}

// False: no child could be made.
bool try_in_children(Shared& shared) {
  uint32_t children[kMostChildren];
  unsigned count = 0;
  while (count < kMostChildren && load(shared.trial) < kCount) {
    const long child = start_copy(Helper::kTrial, shared.stack + kTrialStack, try_calls, &shared);
    if (failed(child)) break;
    children[count++] = static_cast<uint32_t>(child);
    if (shared.trial < kCount) shared.ends |= uint64_t{1} << shared.trial++;
  }
  if (count == 0) return false;
  while (shared.trial < kCount) shared.ends |= uint64_t{1} << shared.trial++;
  for (const Trial& trial : kTrials) allow(trial.number, true);
  for (uint32_t i = 0; i < kCount; ++i) {
    if ((shared.ends >> i & 1) != 0) allow(kTrials[i].number, false);
  }
  while (count > 0) collect_process(children[--count], true);
  return true;
}

}  // namespace

bool may_call(long number) {
  return !g_filtered || (!makes_no_calls() && is_allowed(static_cast<uint32_t>(number)));
}

long call_if_allowed(long number, long a, long b, long c, long d, long e, long f) {
  return may_call(number) ? call_unasked(number, a, b, c, d, e, f) : -EPERM;
}

long call_if_inherited(long number, long a, long b, long c, long d, long e, long f) {
  return is_allowed(static_cast<uint32_t>(number)) ? call_unasked(number, a, b, c, d, e, f)
                                                   : -EPERM;
}

bool makes_no_calls() { return g_filtered && (is_dispatched() || has_added_filters()); }

void note_thread() {
  if (t_filters.seen) return;
  t_filters.filters = load(g_added);
  t_filters.seen = true;
}

AddedFilter::AddedFilter(bool for_all_threads) : for_all_threads_(for_all_threads) {
  note_thread();
  ++t_filters.filters;
  fetch_add(g_added, 1u);
  if (for_all_threads) fetch_add(g_for_all, 1u);
  store_release(g_filtered, true);
}

void AddedFilter::was_refused() {
  if (for_all_threads_) fetch_add(g_for_all, ~0u);
  fetch_add(g_added, ~0u);
  --t_filters.filters;
}

uint32_t known_filters() {
  return static_cast<uint32_t>(g_inherited > 0 ? g_inherited : 0) + load(g_added);
}

void find_inherited_filters(bool restrict) {
  g_inherited = seccomp_filters();
  if (g_inherited <= 0 || !restrict) return;
  for (const uint16_t number : kPlain) allow(number, true);
  g_restricted = true;
  g_filtered = true;
  store<uint32_t>(g_trial, kUnproven);
}

int inherited_filters() { return g_inherited; }

void processes_can_start() {
  uint32_t trial = kUnproven;
  compare_exchange<uint32_t>(g_trial, trial, kProven);
}

void try_inherited_filters() {
  uint32_t trial = kProven;
  // valgrind ends the program at such a clone(2).
  if (on_valgrind() || !compare_exchange<uint32_t>(g_trial, trial, kDone)) return;
  const uint64_t mask = block_signals();
  const long memory = call(SYS_mmap, nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (!failed(memory)) {
    allow(SYS_clone, true);
    const bool tried = try_in_children(*reinterpret_cast<Shared*>(memory));
    if (!tried) allow(SYS_clone, false);
    if (!tried) store<uint32_t>(g_trial, kProven);
    call(SYS_munmap, memory, sizeof(Shared));
  }
  restore_signals(mask);
}

bool is_trial_due() { return load(g_trial) != kDone; }

void set_user_dispatch(bool on, const volatile char* selector) {
  t_filters.dispatched = on;
  t_filters.selector = selector;
  if (on) store_release(g_filtered, true);
}

bool has_user_dispatch() { return t_filters.dispatched; }

bool is_dispatched() {
  const Thread& thread = t_filters;
  return thread.dispatched &&
         (thread.selector == nullptr || *thread.selector != SYSCALL_DISPATCH_FILTER_ALLOW);
}

}  // namespace mtrace::base
