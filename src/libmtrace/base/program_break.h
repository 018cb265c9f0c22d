// What the program took by sbrk and brk, in the mapping that is otherwise malloc's.
//
// Thread-safe; async-signal-safe.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/atomic.h"
#include "base/syscall.h"

namespace mtrace::sys {

struct BreakRange {
  uintptr_t start;
  uintptr_t end;
};
inline constexpr uint32_t kMostBreakRanges = 1024;
inline constinit BreakRange* g_break_ranges = nullptr;  // ascending; mapped for the first one
inline constinit uint32_t g_break_count = 0;
inline constinit uint32_t g_break_busy = 0;      // 1: a thread is in note_break()
inline constinit uint64_t g_break_unplaced = 0;  // bytes that have no range

// The program has moved the break.
inline void note_break(uintptr_t from, uintptr_t to) {
  uint64_t more = to > from ? to - from : 0;
  if (exchange(g_break_busy, 1u) != 0) {  // by another thread, or this handler interrupts it
    fetch_add(g_break_unplaced, more);
    return;
  }
  if (g_break_ranges == nullptr) {
    store_release(g_break_ranges,
                  static_cast<BreakRange*>(map_memory(kMostBreakRanges * sizeof(BreakRange))));
  }
  BreakRange* const ranges = g_break_ranges;
  uint32_t count = g_break_count;
  // What was above the break is no longer the program's.
  const uintptr_t low = std::min(from, to);
  while (count != 0 && ranges[count - 1].start >= low) --count;
  if (count != 0 && ranges[count - 1].end > low) store(ranges[count - 1].end, low);
  if (more != 0 && count != 0 && ranges[count - 1].end == from) {
    store(ranges[count - 1].end, to);
  } else if (more != 0 && ranges != nullptr && count < kMostBreakRanges) {
    store(ranges[count].start, from);
    store(ranges[count].end, to);
    ++count;
  } else {
    fetch_add(g_break_unplaced, more);
  }
  store_release(g_break_count, count);
  store_release(g_break_busy, 0u);
}

// Calls f(start, end) for each range that was noted, in ascending order.
template <typename F>
void each_break_range(F f) {
  const uint32_t count = load_acquire(g_break_count);
  for (uint32_t i = 0; i < count; ++i)
    f(load(g_break_ranges[i].start), load(g_break_ranges[i].end));
}

}  // namespace mtrace::sys
