// What other processes may not ask the kernel for.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace mtrace::target {

// What restricts system calls (seccomp(2)) in the thread of a process that has most of it: the
// number of filters, or 1 where the kernel does not tell it, or in strict mode. 0: nothing, or the
// process is gone.
uint32_t system_call_filters(pid_t pid);

}  // namespace mtrace::target
