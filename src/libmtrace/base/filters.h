// The filters of system calls (seccomp(2)) over this process: copies of those that it was seen to
// add, and the results of the trial of those from before its start. The library judges each of its
// own calls by them first (base/syscall.h): a call that would end the process, raise SIGSYS, or be
// left to another process fails with -EPERM instead. So does a call that the kernel would hand over
// to the program (base/user_dispatch.h).
//
// Thread-safe and async-signal-safe; leaves errno alone; bounded: at most 64 filters, of 32 KiB
// each.
#pragma once

#include <cstdint>

#include "format/seccomp.h"

namespace mtrace::sys {

// Call when the calling thread is first seen. The thread may have inherited any filter added so
// far; a filter that another thread adds later applies only if added for all threads.
void meet_thread();

// Whether a filter that is about to be added (nullptr: strict mode) allows a call, whatever its
// arguments. True for an unreadable filter: the kernel refuses it.
bool filter_allows(const void* program, uint32_t number);

// A filter that the calling thread is about to add. Recorded before the kernel has it, so that no
// call of the library comes between. Not for a child of vfork, whose memory is its parent's.
class AddedFilter {
 public:
  // `program`: the caller's sock_fprog, nullptr: strict mode. A filter that cannot be read or
  // stored counts as one that ends the process at every call.
  AddedFilter(const void* program, bool for_all_threads);
  void was_refused();  // the kernel refused the filter

 private:
  uint32_t index_;
};

// True when a recorded filter may apply to the calling thread.
bool has_added_filters();
// Number of known filters: those that the process started with, and those added by any thread.
uint32_t known_filters();

// The filters' verdict on a call. 25 KiB of stack.
format::Verdict judge_call(const format::SystemCall& call);

// Counts the filters from before the start. Call once, with one thread. With `restrict`, and if
// there are any, the library makes only calls that every program makes (base/inherited_calls.h)
// until the other calls are tried.
void find_inherited_filters(bool restrict);
// The program has started a process: the filters allow clone(2). Async-signal-safe.
void processes_can_start();
// Tries the library's calls under the inherited filters, once clone(2) is known to be allowed:
// makes each call, with arguments that do nothing, in a child with a copy of the memory, unseen by
// the program (no SIGCHLD, nothing to wait for). Takes 0.2 ms, and as long again for each call that
// ends the child. One thread at a time; async-signal-safe.
void try_inherited_filters();
// Whether inherited filters restrict the library and were not tried yet.
bool is_trial_due();
// seccomp_filters() at the time of find_inherited_filters().
int inherited_filters();

}  // namespace mtrace::sys
