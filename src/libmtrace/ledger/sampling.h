// Sampling (MTRACE_SAMPLE): when the next sample falls, and what a recorded block stands for where
// not every block is recorded. A block of `size` bytes is recorded with the probability
// p = 1 - exp(-(size + 1) / mean), and counts as size / p bytes and 1 / p blocks (Horvitz,
// Thompson: A generalization of sampling without replacement from a finite universe, 1952).
// doc/internals/tables.md has the argument.
//
// Integers only: floating-point operations set status flags that belong to the program.
// Thread-safe; async-signal-safe.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "ledger/block.h"

namespace mtrace::ledger {

// Bytes between two samples on average; 0: every block is recorded.
[[gnu::visibility("hidden")]] extern uint64_t g_sample_mean;

struct Weight {
  uint64_t bytes;
  uint64_t blocks;
};

// p * 2^64; UINT64_MAX where p is closer to 1. The relative error is below 2^-32.
uint64_t chance(uint64_t size, uint64_t mean);

// What a block counts as; the same for its whole life. The mean is not 0.
Weight weigh_sample(uint64_t mean, uintptr_t address, const Block& block);
inline Weight weigh(uintptr_t address, const Block& block) {
  const uint64_t mean = g_sample_mean;
  return mean != 0 ? weigh_sample(mean, address, block) : Weight{block.size, 1};
}

// Random numbers for statistics, not for secrets: SplitMix64 (Steele, Lea, Flood: Fast splittable
// pseudorandom number generators, OOPSLA 2014). Each number is drawn by one thread.
class Random {
 public:
  constexpr Random() = default;
  explicit constexpr Random(uint64_t seed) : state_(seed) {}
  void seed(uint64_t seed) { store(state_, seed); }

  // Uniform over all numbers of 64 bits.
  uint64_t operator()();
  // From the exponential distribution with this mean, rounded down. The mean is below 2^57.
  uint64_t exponential(uint64_t mean);

 private:
  uint64_t state_ = 0;
};

}  // namespace mtrace::ledger
