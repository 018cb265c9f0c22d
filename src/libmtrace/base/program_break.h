// What the program took by sbrk, in the mapping that is otherwise malloc's.
//
// Thread-safe; async-signal-safe.
#pragma once

#include <cstdint>

#include "base/atomic.h"

namespace mtrace::sys {

struct BreakRange {
  uintptr_t start;
  uintptr_t end;  // 0: being noted
};
inline constexpr uint32_t kMostBreakRanges = 32;  // further ones count as malloc's
inline constinit BreakRange g_break_ranges[kMostBreakRanges] = {};
inline constinit uint32_t g_break_count = 0;

inline void note_break(uintptr_t start, uintptr_t end) {
  const uint32_t count = load(g_break_count);
  if (count != 0 && count <= kMostBreakRanges) {
    uintptr_t last = start;
    if (compare_exchange(g_break_ranges[count - 1].end, last, end)) return;
  }
  if (count >= kMostBreakRanges) return;
  const uint32_t place = fetch_add(g_break_count, 1u);
  if (place >= kMostBreakRanges) return;
  store(g_break_ranges[place].start, start);
  store_release(g_break_ranges[place].end, end);
}

// Calls f(start, end) for each range that was noted, oldest first.
template <typename F>
void each_break_range(F f) {
  const uint32_t count = load(g_break_count);
  for (uint32_t i = 0; i < count && i < kMostBreakRanges; ++i) {
    const uintptr_t end = load_acquire(g_break_ranges[i].end);
    if (end != 0) f(load(g_break_ranges[i].start), end);
  }
}

}  // namespace mtrace::sys
