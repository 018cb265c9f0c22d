// Addresses as an event log has them: allocators give the same ones again and again, so each is
// looked for among those that the thread used last. Moving each to the front (Bentley, Sleator,
// Tarjan, Wei: A Locally Adaptive Data Compression Scheme, CACM 1986) makes the numbers small.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "events/column.h"

namespace mtrace::events {

class RecentAddresses {
 public:
  // Returns the number that stands for a multiple of 8.
  uint64_t encode(uint64_t address) {
    for (size_t i = 0; i < kCount; ++i) {
      if (recent_[i] == address) return move_to_front(i), i;
    }
    const auto distance = static_cast<int64_t>(address - recent_[0]) / 8;
    put_first(address);
    return kCount + zigzag(distance);
  }
  uint64_t decode(uint64_t number) {
    if (number < kCount) {
      move_to_front(number);
    } else {
      put_first(recent_[0] + static_cast<uint64_t>(from_zigzag(number - kCount)) * 8);
    }
    return recent_[0];
  }

 private:
  static constexpr size_t kCount = 32;

  void move_to_front(size_t index) {
    const uint64_t address = recent_[index];
    std::memmove(recent_ + 1, recent_, index * sizeof *recent_);
    recent_[0] = address;
  }
  void put_first(uint64_t address) {
    recent_[kCount - 1] = address;
    move_to_front(kCount - 1);
  }

  uint64_t recent_[kCount] = {};
};

}  // namespace mtrace::events
