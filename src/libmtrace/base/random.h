// Random numbers for statistics, not for secrets. Integers throughout; async-signal-safe.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "format/memlog.h"

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

inline uint64_t Random::operator()() {
  constexpr uint64_t kStep = 0x9e3779b97f4a7c15u;
  return format::mix64(fetch_add(state_, kStep) + kStep);
}

// J. von Neumann, Various techniques used in connection with random digits, 1951 (Knuth, The Art of
// Computer Programming 2, 3.4.1): draw numbers between 0 and 1 as long as each is below the one
// before. An odd number of them comes with the probability exp(-first), and then the first is the
// fraction; an even number raises the whole part by one.
inline uint64_t Random::exponential(uint64_t mean) {
  for (uint64_t whole = 0;; ++whole) {
    const uint64_t first = (*this)();
    bool odd = true;
    uint64_t last = first;
    for (uint64_t next = (*this)(); next < last; next = (*this)()) {
      last = next;
      odd = !odd;
    }
    if (odd) {
      return whole * mean +
             static_cast<uint64_t>(static_cast<unsigned __int128>(first) * mean >> 64);
    }
  }
}

}  // namespace mtrace
