#include "base/filters.h"

#include <errno.h>
#include <sys/syscall.h>

#include "base/atomic.h"
#include "base/inherited_calls.h"
#include "base/probe.h"
#include "base/process.h"
#include "base/syscall.h"
#include "base/user_dispatch.h"
#include "base/valgrind.h"

namespace mtrace::sys {

bool g_filtered = false;

namespace {

using format::SystemCall;
using format::Verdict;

constexpr uint32_t kMost = 64;
constexpr size_t kWaysOfMany = 256;  // branches at a time, with unknown arguments
constexpr size_t kWaysOfOne = 4;     // branches, where only the caller's address is unknown

enum Kind : uint32_t {
  kOpaque,  // being added, or unreadable: ends the process at every call
  kProgram,
  kStrict,
  kRefused,  // never came into force; the place is free
};

struct Filter {
  uint32_t kind;
  uint32_t length;
  sock_filter* code;  // room for BPF_MAXINSNS
};

Filter g_filters[kMost];
uint32_t g_count = 0;    // may run past kMost: then all are as if opaque
uint64_t g_for_all = 0;  // bit i: g_filters[i] holds for all threads
int g_inherited = 0;

enum Trial : uint32_t {
  kNone,      // no filters from before the start, or no reports to write
  kUnproven,  // clone(2) may end the process, so nothing is tried
  kProven,    // clone(2) is allowed: the next report begins with the trial
  kDone,
};
uint32_t g_trial = kNone;

struct Thread {
  uint64_t filters;  // bit i: g_filters[i] may hold for this thread
  bool met;
};
[[gnu::visibility("hidden")]] thread_local constinit Thread t_thread_filters = {};

// All filters in force: a thread that was not met may have inherited any.
uint64_t present() {
  const uint32_t count = load_acquire(g_count);
  uint64_t filters = 0;
  for (uint32_t i = 0; i < count && i < kMost; ++i) {
    if (load_acquire(g_filters[i].kind) != kRefused) filters |= uint64_t{1} << i;
  }
  return filters;
}
uint64_t filters_of_this_thread() {
  const Thread& thread = t_thread_filters;
  return thread.met ? thread.filters | load(g_for_all) : present();
}

template <size_t kWays>
Verdict judge_by(const Filter& filter, const SystemCall& call) {
  switch (load_acquire(filter.kind)) {
    case kRefused:
      return Verdict::kAllowed;
    case kStrict:
      return call.number == SYS_read || call.number == SYS_write || call.number == SYS_exit ||
                     call.number == SYS_rt_sigreturn
                 ? Verdict::kAllowed
                 : Verdict::kEnds;
    case kProgram:
      return format::judge<kWays>(filter.code, filter.length, call);
    default:
      return Verdict::kEnds;
  }
}

template <size_t kWays>
[[gnu::always_inline]] inline Verdict judge_by_all(const SystemCall& call) {
  if (is_dispatched() || ends_by_inheritance(call.number)) return Verdict::kEnds;
  uint64_t filters = filters_of_this_thread();
  if (load(g_count) > kMost) return Verdict::kEnds;
  auto worst = Verdict::kAllowed;
  for (; filters != 0 && worst != Verdict::kEnds; filters &= filters - 1) {
    const Verdict one = judge_by<kWays>(g_filters[__builtin_ctzll(filters)], call);
    if (one > worst) worst = one;
  }
  return worst;
}

// Claims a place of the table; its filter is opaque until copied.
uint32_t claim_place() {
  const uint32_t count = load(g_count);
  for (uint32_t i = 0; i < count && i < kMost; ++i) {
    uint32_t kind = kRefused;
    // A thread that loses the place to another tries the next one.
    if (compare_exchange<uint32_t>(g_filters[i].kind, kind, kOpaque)) return i;
  }
  return fetch_add(g_count, 1u);
}

// Copies the caller's filter program. False: unreadable, or no memory.
bool copy_program(const void* program, Filter& filter) {
  sock_fprog given;
  if (!read_memory(reinterpret_cast<uintptr_t>(program), &given, sizeof given)) return false;
  if (given.len == 0 || given.len > BPF_MAXINSNS) return false;
  // Never unmapped: another thread may still be reading a refused filter.
  constexpr size_t kRoom = BPF_MAXINSNS * sizeof(sock_filter);
  if (filter.code == nullptr) filter.code = static_cast<sock_filter*>(map_memory(kRoom));
  if (filter.code == nullptr) return false;
  filter.length = given.len;
  return read_memory(reinterpret_cast<uintptr_t>(given.filter), filter.code,
                     given.len * sizeof(sock_filter));
}

}  // namespace

bool may_call(long number, long a, long b, long c, long d, long e, long f) {
  const auto word = [](long value) { return static_cast<uint64_t>(value); };
  const SystemCall call = {
      static_cast<uint32_t>(number), 0x3f, {word(a), word(b), word(c), word(d), word(e), word(f)}};
  return judge_by_all<kWaysOfOne>(call) != Verdict::kEnds;
}

long call_if_allowed(long number, long a, long b, long c, long d, long e, long f) {
  return may_call(number, a, b, c, d, e, f) ? call_unasked(number, a, b, c, d, e, f) : -EPERM;
}

long call_if_inherited(long number, long a, long b, long c, long d, long e, long f) {
  return ends_by_inheritance(static_cast<uint32_t>(number))
             ? -EPERM
             : call_unasked(number, a, b, c, d, e, f);
}

void meet_thread() {
  Thread& thread = t_thread_filters;
  if (thread.met) return;
  thread.filters = present();
  thread.met = true;
}

bool filter_allows(const void* program, uint32_t number) {
  sock_fprog given;
  if (program == nullptr) return number == SYS_rt_sigreturn || number == SYS_exit;
  if (!read_memory(reinterpret_cast<uintptr_t>(program), &given, sizeof given)) return true;
  if (given.len == 0 || given.len > BPF_MAXINSNS) return true;
  if (!readable(reinterpret_cast<uintptr_t>(given.filter), given.len * sizeof(sock_filter))) {
    return true;
  }
  return format::judge<kWaysOfMany>(given.filter, given.len, {number, 0, {}}) == Verdict::kAllowed;
}

AddedFilter::AddedFilter(const void* program, bool for_all_threads) {
  meet_thread();
  index_ = claim_place();
  Thread& thread = t_thread_filters;
  if (index_ < kMost) {
    Filter& filter = g_filters[index_];
    // While being copied the filter applies to no thread that was met, this one included.
    uint32_t kind = kStrict;
    if (program != nullptr) kind = copy_program(program, filter) ? kProgram : kOpaque;
    store_release<uint32_t>(filter.kind, kind);
    thread.filters |= uint64_t{1} << index_;
    uint64_t all = load(g_for_all);
    while (for_all_threads && !compare_exchange(g_for_all, all, all | thread.filters)) {
    }
  }
  store_release(g_filtered, true);
}

void AddedFilter::was_refused() {
  if (index_ >= kMost) return;
  const uint64_t others = ~(uint64_t{1} << index_);
  t_thread_filters.filters &= others;
  uint64_t all = load(g_for_all);
  while (!compare_exchange(g_for_all, all, all & others)) {
  }
  store_release<uint32_t>(g_filters[index_].kind, kRefused);
}

bool has_added_filters() { return filters_of_this_thread() != 0; }

uint32_t known_filters() {
  const uint32_t count = load(g_count);
  const uint32_t beyond = count > kMost ? count - kMost : 0;
  uint32_t known = static_cast<uint32_t>(g_inherited > 0 ? g_inherited : 0) + beyond;
  for (uint64_t filters = present(); filters != 0; filters &= filters - 1) ++known;
  return known;
}

Verdict judge_call(const SystemCall& call) { return judge_by_all<kWaysOfMany>(call); }

void find_inherited_filters(bool restrict) {
  g_inherited = seccomp_filters();
  if (g_inherited <= 0 || !restrict) return;
  assume_inherited_calls();
  g_filtered = true;
  store<uint32_t>(g_trial, kUnproven);
}

void processes_can_start() {
  uint32_t trial = kUnproven;
  compare_exchange<uint32_t>(g_trial, trial, kProven);
}

void try_inherited_filters() {
  uint32_t trial = kProven;
  // valgrind ends the program at such a clone(2).
  if (on_valgrind() || !compare_exchange<uint32_t>(g_trial, trial, kDone)) return;
  if (try_inherited_calls() == Tried::kNot) store<uint32_t>(g_trial, kProven);
}

bool is_trial_due() {
  const uint32_t trial = load(g_trial);
  return trial == kUnproven || trial == kProven;
}

int inherited_filters() { return g_inherited; }

}  // namespace mtrace::sys
