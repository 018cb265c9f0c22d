// Restrictions of other processes' system calls.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace mtrace::target {

// Returns the largest number of seccomp filters (seccomp(2)) that a thread of the process has; 1 in
// strict mode, or where the kernel does not tell the number; 0: none, or the process is gone.
uint32_t system_call_filters(pid_t pid);

}  // namespace mtrace::target
