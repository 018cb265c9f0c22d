// Filters of system calls (seccomp(2)) in other processes, and whether they allow what attaching
// calls.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "process/inspect/seccomp.h"

namespace mtrace::process {

// Restrictions of other processes' system calls.

// Returns the largest number of seccomp filters (seccomp(2)) that a thread of the process has; 1 in
// strict mode, or where the kernel does not tell the number; 0: none, or the process is gone.
uint32_t system_call_filters(pid_t pid);

// The system calls that seccomp filters must allow in a process that memlog attaches to.

struct FilteredCall {
  const char* name;
  uint32_t number;
  bool needed;        // false: the library works without it, so it may fail
  int argument = -1;  // index of the argument with a known value below 2^32; -1: none
  uint32_t value = 0;
};

// Returns the calls that the library, its loading and the borrowed thread's code may make.
const std::vector<FilteredCall>& filtered_calls();

// Checks whether a process's system call filters (seccomp(2)) allow the calls that attaching and
// the library make. A filter is a classic BPF program. It is interpreted here; where unknown
// arguments decide, both branches are taken.

// Returns the worst result that the filter can give a call.
Verdict judge(const std::vector<sock_filter>& filter, const FilteredCall& call);

// Returns the mode of a thread; 0: none, 1: strict mode, 2: filters.
int seccomp_mode(pid_t pid, pid_t tid);

// Throws AttachError when a thread is in strict mode. Reads a file of /proc for each thread, so
// call it before the threads are stopped.
void refuse_strict_mode(pid_t pid);

// Checks the filters of stopped threads. Throws AttachError when a filter ends the process at a
// call, refuses a needed call, or may not be read (only root may read filters), and of threads that
// hand over their calls to the program (prctl(2), PR_SET_SYSCALL_USER_DISPATCH), which Linux tells
// since 6.4.
void check_filters(pid_t pid, const std::vector<pid_t>& stopped);

// Returns whether no filter of a stopped thread stands in the way of restart_syscall(2), with which
// the kernel continues poll, nanosleep and others after a stop. False of filters that may not be
// read.
bool may_restart(pid_t pid, pid_t tid);

// Throws SignalKills when a filter of one of these threads, stopped, does not let a signal handler
// return. Filters that may not be read are taken to let it.
void check_signal_return(pid_t pid, const std::vector<pid_t>& stopped);

}  // namespace mtrace::process
