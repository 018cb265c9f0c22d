// Filters of system calls (seccomp(2)) over this process. A filter may end the process at a call,
// and only the kernel knows at which. So the library makes only calls that are known to be allowed;
// any other fails with -EPERM (base/syscall.h):
//
// - Under filters from before the start: those that every program makes at its start, and the few
//   that a report needs if it is written in place. Once the program has started a process, and so
//   clone(2) is allowed, a child tries the others.
// - In a thread with a filter that the program has added since: none.
// - In a thread whose calls the kernel would hand over to the program (user dispatch): none.
//
// Thread-safe and async-signal-safe; leaves errno alone.
#pragma once

#include <cstdint>

namespace mtrace::base {

// Whether the calling thread must make no system call: it may have a filter that was added, or the
// kernel would hand the call over.
bool makes_no_calls();

// Call when the calling thread is first seen. The thread may have inherited any filter added so
// far; a filter that another thread adds later applies only if added for all threads.
void note_thread();

// A filter that the calling thread is about to add. Recorded before the kernel has it, so that no
// call of the library comes between. Not for a child of vfork, whose memory is its parent's.
class AddedFilter {
 public:
  explicit AddedFilter(bool for_all_threads);
  void was_refused();  // the kernel refused the filter

 private:
  bool for_all_threads_;
};

// Number of known filters: those that the process started with, and those added by any thread.
uint32_t known_filters();

// Counts the filters from before the start. Call once, with one thread. `restrict`: they restrict
// the library's calls.
void find_inherited_filters(bool restrict);
// seccomp_filters() at that time.
int inherited_filters();
// The program has started a process: the filters allow clone(2).
void processes_can_start();
// Tries the library's calls under the inherited filters, once clone(2) is known to be allowed:
// makes each call, with arguments that do nothing, in a child with a copy of the memory, unseen by
// the program (no SIGCHLD, nothing to wait for). Takes 0.2 ms, and as long again for each call that
// ends the child. One thread at a time.
void try_inherited_filters();
// Whether inherited filters restrict the library and were not tried yet.
bool is_trial_due();

// Syscall user dispatch (prctl(2), PR_SET_SYSCALL_USER_DISPATCH): while a byte of the program's
// says so, the kernel raises SIGSYS in place of each system call of a thread, and the program's
// handler decides. Calls from one range of addresses are exempt. The program would take a call of
// the library's for its own.
//
// Records that the kernel is about to hand over the library's calls in this thread (`on`), or does
// so no longer. `selector` nullptr and `on`: all calls, without a byte. The setting is per thread;
// threads and processes that a thread creates begin without it.
void set_user_dispatch(bool on, const volatile char* selector);
bool has_user_dispatch();
// Whether the kernel would hand over a call of the library now.
bool is_dispatched();

}  // namespace mtrace::base
