// Sampling (MTRACE_SAMPLE): what a recorded block stands for where not every block is recorded. A
// block of `size` bytes is recorded with the probability p = 1 - exp(-(size + 1) / mean), and
// counts as size / p bytes and 1 / p blocks (Horvitz, Thompson: A generalization of sampling
// without replacement from a finite universe, 1952). doc/internals/tables.md has the argument.
//
// Integers only: floating-point operations set status flags that belong to the program.
// Async-signal-safe.
#pragma once

#include <cstdint>

#include "ledger/block_table.h"

namespace mtrace::ledger {

struct Weight {
  uint64_t bytes;
  uint64_t blocks;
};

// p * 2^64; UINT64_MAX where p is closer to 1. The relative error is below 2^-32.
uint64_t chance(uint64_t size, uint64_t mean);

class Sampling {
 public:
  // Bytes between two samples on average; 0: every block is recorded.
  uint64_t mean = 0;

  // What a block counts as; the same for its whole life.
  Weight weigh(uintptr_t address, const Block& block) const {
    return mean != 0 ? weigh_sample(address, block) : Weight{block.size, 1};
  }

 private:
  Weight weigh_sample(uintptr_t address, const Block& block) const;
};

}  // namespace mtrace::ledger
