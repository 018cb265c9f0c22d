// What the ledger knows of a live block.
#pragma once

#include <cstdint>

namespace mtrace::ledger {

inline constexpr uint64_t kMostBytes = (uint64_t{1} << 47) - 1;  // of a block: the address space

struct Block {
  uint64_t size;               // requested bytes, up to kMostBytes
  uint32_t stack;              // index in the stack table, from 1, below 2^26
  uint32_t birth : 31 = 0;     // packed ticks
  uint32_t is_sample : 1 = 0;  // one of a process that has come to sample late (ledger/sampling.h)
};

// What to do with a block that was freed past the hooks: another block is about to be put at its
// address. It is in no table any more. Called by whoever owns the address, inside an operation.
// nullptr: nothing. Written before the first block is put.
using OnMissedFree = void (*)(uintptr_t address, const Block& block);
[[gnu::visibility("hidden")]] extern OnMissedFree g_on_missed_free;
inline void missed_free(uintptr_t address, const Block& block) {
  if (g_on_missed_free != nullptr) g_on_missed_free(address, block);
}

}  // namespace mtrace::ledger
