// What the ledger records of a live block.
#pragma once

#include <cstdint>

namespace mtrace::ledger {

inline constexpr uint64_t kMostBytes = (uint64_t{1} << 47) - 1;  // largest block: 128 TiB

struct Block {
  uint64_t size;       // requested bytes, up to kMostBytes
  uint32_t stack;      // index in the stack table, from 1, below 2^26
  uint32_t birth = 0;  // packed ticks
};

// Handler for a block that was freed past the hooks, called when another block takes its address.
// The freed block is in no table any more. The caller is the thread that records the other block,
// or a report, inside an operation. nullptr: no handler. Set before the first block is put.
using OnMissedFree = void (*)(uintptr_t address, const Block& block);
[[gnu::visibility("hidden")]] extern OnMissedFree g_on_missed_free;
inline void missed_free(uintptr_t address, const Block& block) {
  if (g_on_missed_free != nullptr) g_on_missed_free(address, block);
}

}  // namespace mtrace::ledger
