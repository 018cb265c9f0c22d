// Hooks of what restricts system calls: filters (seccomp(2)), which then hold for the library's
// calls, too, and syscall user dispatch. Also a fork by syscall(2), which runs no atfork handler.
#include <errno.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstdarg>

#include "base/atomic.h"
#include "base/filters.h"
#include "base/machine.h"
#include "base/probe.h"
#include "base/process.h"
#include "base/spawn.h"
#include "base/syscall.h"
#include "life/fork.h"
#include "life/lifecycle.h"
#include "life/triggers.h"
#include "modules/object.h"
#include "next/next_functions.h"
#include "record/recorder.h"
#include "report/report.h"
#include "report/status.h"

namespace mtrace::entry {
namespace {

#ifdef SYS_fork
constexpr long kFork = SYS_fork;
#else
constexpr long kFork = SYS_clone;
#endif

// Calls add(), after which the filter is in force if succeeded(result). Does not cut short a report
// under way in another thread.
template <typename Call, typename Succeeded>
long add_filter(bool for_all_threads, Call add, Succeeded succeeded) {
  base::only_probe();
  // The filter of a vfork child must not be noted in the memory of its parent; the child is about
  // to become another program. (Under an earlier filter a vfork child is not recognised.)
  const bool again = base::makes_no_calls();
  if (!life::start() || !record::counting() || (!again && !life::is_own_process())) return add();
  // Before the filter is in force: no handler that was entered later could return.
  const bool all = for_all_threads || single_threaded();
  const life::Returns before = again ? life::Returns::kNone : life::give_up_handlers(all);
  const bool held = for_all_threads && report::hold_reports();
  base::AddedFilter filter(for_all_threads);
  const long result = add();
  if (!succeeded(result)) filter.was_refused();
  if (!again && !succeeded(result)) life::take_up_handlers(before);
  report::status_filters(base::known_filters());
  if (held) report::release_reports();
  return result;
}

using Words = unsigned long[4];

long call_prctl(int option, const Words& words) {
  if (next::g_next.prctl != nullptr) {
    return next::g_next.prctl(option, words[0], words[1], words[2], words[3]);
  }
  return next::answer_of(base::call_unasked(
      SYS_prctl, option, static_cast<long>(words[0]), static_cast<long>(words[1]),
      static_cast<long>(words[2]), static_cast<long>(words[3]), 0));
}

#ifndef PR_SYS_DISPATCH_INCLUSIVE_ON
#define PR_SYS_DISPATCH_INCLUSIVE_ON 2
#endif

// Whether user dispatch will catch calls from this library. The range of addresses is exempt or,
// with PR_SYS_DISPATCH_INCLUSIVE_ON, the only one that is caught.
bool dispatches_library(const Words& words) {
  modules::FoundObject own;
  if (words[0] == PR_SYS_DISPATCH_OFF) return false;
  if (!modules::find_object(reinterpret_cast<uintptr_t>(dispatches_library), &own)) return true;
  const uintptr_t first = words[1];
  const uintptr_t last = first + words[2];
  if (words[0] == PR_SYS_DISPATCH_INCLUSIVE_ON) return first < own.end && own.start < last;
  return own.start < first || last < own.end;
}

uint32_t g_dispatching = 0;  // threads with dispatch on, also those that ended so
life::Returns g_before_first =
    life::Returns::kAll;  // before the first such thread gave up the handlers

void begin_dispatch() {
  if (fetch_add(g_dispatching, 1u) == 0) g_before_first = life::give_up_handlers(true);
}
void end_dispatch() {
  if (fetch_add(g_dispatching, ~0u) == 1 && !base::makes_no_calls())
    life::take_up_handlers(g_before_first);
}

// Dispatch is per thread. But a signal may reach any thread, and dispatch catches libc's return
// from a handler, too: so the library gives up its handlers while a thread has dispatch on.
template <typename Call>
long set_dispatch(const Words& words, Call call) {
  const bool was_on = base::has_user_dispatch();
  const bool on = dispatches_library(words);
  if (on && !was_on && (!life::start() || !record::counting() || !life::is_own_process()))
    return call();
  if (on && !was_on) begin_dispatch();
  if (on) base::set_user_dispatch(true, reinterpret_cast<const volatile char*>(words[3]));
  const long result = call();
  const bool off = result == 0 ? !on : !was_on;
  if (off) base::set_user_dispatch(false, nullptr);
  if (off && (on || was_on)) end_dispatch();
  return result;
}

template <typename Call>
long look_at_prctl(int option, const Words& words, Call call) {
  if (option == PR_SET_SYSCALL_USER_DISPATCH) return set_dispatch(words, call);
  // Most often a filter follows, and it is not always added through a hook.
  if (option == PR_SET_NO_NEW_PRIVS) base::only_probe();
  if (option != PR_SET_SECCOMP ||
      (words[0] != SECCOMP_MODE_STRICT && words[0] != SECCOMP_MODE_FILTER)) {
    return call();
  }
  return add_filter(false, call, [](long result) { return result == 0; });
}

template <typename Call>
long look_at_seccomp(long operation, long flags, Call call) {
  if (operation != SECCOMP_SET_MODE_STRICT && operation != SECCOMP_SET_MODE_FILTER) return call();
  const bool listener = (flags & SECCOMP_FILTER_FLAG_NEW_LISTENER) != 0;
  // With TSYNC, a result above 0 is the id of a thread that cannot have the filter.
  return add_filter((flags & SECCOMP_FILTER_FLAG_TSYNC) != 0, call,
                    [=](long result) { return listener ? result >= 0 : result == 0; });
}

long system_call(long number, long a, long b, long c, long d, long e, long f) {
  if (next::g_next.system_call != nullptr)
    return next::g_next.system_call(number, a, b, c, d, e, f);
  return next::answer_of(base::call_unasked(number, a, b, c, d, e, f));
}

}  // namespace
}  // namespace mtrace::entry

using namespace mtrace;
using namespace mtrace::entry;

MTRACE_EXPORT int prctl(int option, ...) noexcept {
  va_list list;
  va_start(list, option);
  unsigned long words[4];
  for (unsigned long& word : words) word = va_arg(list, unsigned long);
  va_end(list);
  return static_cast<int>(look_at_prctl(option, words, [&] { return call_prctl(option, words); }));
}

// For the few numbers that the assembly selects, always with six arguments.
extern "C" [[gnu::used, gnu::visibility("hidden")]] MTRACE_REALIGN long mtrace_look_at_system_call(
    long number, long a, long b, long c, long d, long e, long f) noexcept {
  const auto call = [=] { return system_call(number, a, b, c, d, e, f); };
  if (number == SYS_prctl) {
    const Words words = {static_cast<unsigned long>(b), static_cast<unsigned long>(c),
                         static_cast<unsigned long>(d), static_cast<unsigned long>(e)};
    return look_at_prctl(static_cast<int>(a), words, call);
  }
  if (number == SYS_seccomp) return look_at_seccomp(a, b, call);
  // No start() for other calls: an allocator may call syscall(2) while it sets itself up.
  if ((number != kFork && number != SYS_clone) || !life::start()) return call();
  if (number == SYS_clone) base::note_clone(static_cast<unsigned long>(a));
  life::prepare_fork();
  const long child = call();
  if (child == 0) life::leave_parents_tables();
  return child;
}
