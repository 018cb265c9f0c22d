// What the ledger knows of a live block.
#pragma once

#include <cstdint>

namespace mtrace::ledger {

inline constexpr uint64_t kMostBytes = (uint64_t{1} << 47) - 1;  // of a block: the address space

struct Block {
  uint64_t size;       // requested bytes, up to kMostBytes
  uint32_t stack;      // index in the stack table, from 1, below 2^26
  uint32_t birth = 0;  // packed ticks
};

}  // namespace mtrace::ledger
