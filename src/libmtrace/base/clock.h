// The coarse monotonic clock, read without entering the kernel: its function in the vDSO is called
// directly, because clock_gettime of libc may be replaced by the program or by another preloaded
// library.
//
// Thread-safe; async-signal-safe, except use_vdso_clock().
#pragma once

#include <time.h>

#include <cstdint>

#include "base/machine.h"

namespace mtrace::base {

namespace internal {
using GetTime = int (*)(clockid_t, timespec*);
[[gnu::visibility("hidden")]] extern GetTime get_time;  // never null
inline uint64_t nanoseconds(const timespec& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}
}  // namespace internal

// The vDSO's clock_gettime, by which coarse_time() reads from here on; nullptr: it has none. Call
// once, before the first coarse_time(); without the function each reading is a system call.
inline constexpr char kVdsoClock[] = "__vdso_clock_gettime";
void use_vdso_clock(void* function);

// Nanoseconds since an arbitrary moment, never less than before; moves in steps.
inline uint64_t coarse_time() {
  timespec now;
  internal::get_time(CLOCK_MONOTONIC_COARSE, &now);
  return internal::nanoseconds(now);
}
// coarse_time() of this process's tick 0 (ledger/block.h).
[[gnu::visibility("hidden")]] extern uint64_t g_time_zero;
// Nanoseconds per step, 1 to 10 ms on Linux.
uint64_t coarse_resolution();

// ---- Time stamps that order events of all threads: if one event happens before another, by
// whatever way, its stamp is smaller. doc/internals/events.md has the argument.
//
// Thread-safe; async-signal-safe, except find_stamps().

namespace internal {
[[gnu::visibility("hidden")]] extern bool counts_stamps;
uint64_t unique_time();
}  // namespace internal

// Decides whether stamps use the time stamp counter, which must agree on all processors. Call once,
// after use_vdso_clock().
void find_stamps();
// True: stamps are counter values. False: nanoseconds.
inline bool stamps_are_counted() { return internal::counts_stamps; }

inline uint64_t stamp() {
  if (!internal::counts_stamps) [[unlikely]]
    return internal::unique_time();
  return machine::counter();
}

}  // namespace mtrace::base
