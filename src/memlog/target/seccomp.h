// Whether the filters of system calls (seccomp(2)) of a process leave alone what attaching to it
// and the library in it call. A filter is a program of the kernel's classic BPF: it is run here,
// with every way that it can take where arguments decide.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <vector>

#include "format/seccomp.h"
#include "target/filtered_calls.h"

namespace mtrace::target {

using format::Verdict;

// The worst that can become of a call.
Verdict judge(const std::vector<sock_filter>& filter, const FilteredCall& call);

// Of a thread; 0: none, 1: strict mode, 2: filters.
int seccomp_mode(pid_t pid, pid_t tid);

// Throws AttachError when a thread is in strict mode. Reads a text for each: for before they stop.
void refuse_strict_mode(pid_t pid);

// Looks at the filters of stopped threads. Throws AttachError when one may not be looked at, which
// only root may, or ends the process at a call, or refuses one that is needed.
void check_filters(pid_t pid, const std::vector<pid_t>& stopped);

}  // namespace mtrace::target
