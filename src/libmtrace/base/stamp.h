// Time stamps that order events of all threads: if one event happens before another, by whatever
// way, its stamp is smaller. doc/events.md has the argument.
//
// Thread-safe; async-signal-safe, except find_stamps().
#pragma once

#include <cstdint>

#include "base/machine.h"

namespace mtrace::sys {

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

}  // namespace mtrace::sys
