// Counts the memory of the tables, and calls a function when it passes a mark (MTRACE_MAX_MEMORY).
// Thread-safe; async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"

namespace mtrace::sys {

struct TableGrowth {
  uint64_t bytes;  // of the tables
  uint64_t mark;   // 0: none
  void (*passed)();
};
inline constinit TableGrowth g_table_growth = {};

// Counts `bytes` more for the tables. Past the mark calls passed(), inside an operation on the
// tables.
inline void tables_grew(size_t bytes) {
  TableGrowth& growth = g_table_growth;
  const uint64_t now = fetch_add<uint64_t>(growth.bytes, bytes) + bytes;
  const uint64_t mark = load(growth.mark);
  if (mark != 0 && now > mark) growth.passed();
}

// Has `passed` called when the tables have more than `bytes`, and then at each growth until it sets
// another mark.
inline void watch_table_growth(uint64_t bytes, void (*passed)()) {
  g_table_growth.passed = passed;
  store_release(g_table_growth.mark, bytes);
}

}  // namespace mtrace::sys
