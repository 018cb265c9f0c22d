// The coarse monotonic clock, read without entering the kernel: its function in the vDSO is called
// directly, because clock_gettime of libc may be replaced by the program or by another preloaded
// library.
//
// Thread-safe; async-signal-safe, except find_clock().
#pragma once

#include <cstdint>

namespace mtrace::sys {

// Looks for the vDSO's function, once, before the first coarse_time(); without it each reading is
// a system call.
void find_clock();

// Nanoseconds since an arbitrary moment, never less than before; moves in steps.
uint64_t coarse_time();
// Nanoseconds a step, 1 to 10 ms on Linux.
uint64_t coarse_resolution();

}  // namespace mtrace::sys
