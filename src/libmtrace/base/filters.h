// The filters of system calls (seccomp(2)) over this process: those that it was seen to add, kept
// as copies, and what was found out about those from before its start. Each call of the library's
// own is run through them first (base/syscall.h): one that would end the process, or raise SIGSYS,
// or be left to another process, is not made and fails with -EPERM. So does each call that the
// kernel would hand over to the program (base/user_dispatch.h).
//
// Thread-safe and async-signal-safe; leaves errno alone; bounded: at most 64 filters, of 32 KiB
// each.
#pragma once

#include <cstdint>

#include "format/seccomp.h"

namespace mtrace::sys {

// The calling thread is first seen. Filters that others add later are theirs, unless they are added
// for all threads; of the earlier ones it may have inherited any.
void meet_thread();

// Whether a filter that is about to be added (nullptr: strict mode) lets a call be made, whatever
// its arguments. True of one that cannot be read: the kernel refuses it.
bool filter_allows(const void* program, uint32_t number);

// A filter that the calling thread is about to add: known from before the kernel has it, so that no
// call of the library's comes between. Not for a child of vfork, whose memory is its parent's.
class AddedFilter {
 public:
  // `program` is the caller's sock_fprog, nullptr: strict mode. One that cannot be read, or finds
  // no room, counts as one that ends the process at every call.
  AddedFilter(const void* program, bool for_all_threads);
  void was_refused();  // the kernel has not taken it

 private:
  uint32_t index_;
};

// True when a filter that was seen may hold for the calling thread.
bool has_added_filters();
// Filters that this process knows of: those it was started with, and those added by any thread.
uint32_t known_filters();

// What the filters make of a call. 25 KiB of stack.
format::Verdict judge_call(const format::SystemCall& call);

// Counts the filters from before the start, once, alone. With `restrict`, and where there are any,
// the library makes only calls that every program makes (base/inherited_calls.h) until it is known
// what they make of the others.
void find_inherited_filters(bool restrict);
// This program has started a process, so the filters do not end it at clone(2). Async-signal-safe.
void processes_can_start();
// Finds out what the filters make of the library's calls, once, if that can be done: each is made
// in a child with a copy of the memory, unseen by the program (no SIGCHLD, nothing to wait for),
// with arguments that do nothing. Takes 0.2 ms, and as long again for each call that ends the
// child. One thread at a time; async-signal-safe.
void try_inherited_filters();
// There are such filters, and they were not tried.
bool is_trial_due();
// How many restrictions there were then; see seccomp_filters().
int inherited_filters();

}  // namespace mtrace::sys
