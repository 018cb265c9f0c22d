// Random numbers for statistics, not for secrets. Integers throughout; async-signal-safe.
#pragma once

#include <cstdint>

#include "base/atomic.h"

namespace mtrace {

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
// Thread-safe: each number is drawn by one thread.
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

}  // namespace mtrace
