// Bits that any thread sets and none clears. Lock-free; async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"

namespace mtrace {

template <size_t kBits>
class BitSet {
 public:
  void set(size_t at) {
    const uint64_t bit = uint64_t{1} << at % 64;
    uint64_t& word = words_[at / 64];
    for (uint64_t seen = load(word); (seen & bit) == 0;) {
      if (compare_exchange(word, seen, seen | bit)) return;
    }
  }
  bool has(size_t at) const { return (load(words_[at / 64]) >> at % 64 & 1) != 0; }

  // Calls visit(at) for each bit that is set when the call begins, and perhaps for some set later.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (size_t i = 0; i < kWords; ++i) {
      for (uint64_t left = load_acquire(words_[i]); left != 0; left &= left - 1) {
        visit(i * 64 + static_cast<size_t>(__builtin_ctzll(left)));
      }
    }
  }

 private:
  static constexpr size_t kWords = (kBits + 63) / 64;
  uint64_t words_[kWords] = {};
};

}  // namespace mtrace
