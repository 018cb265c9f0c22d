// The memory that a parser may look at: the readable segments of one loaded object. Whatever the
// bytes in it say, nothing outside is read.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mtrace::unwind {

class Bounds {
 public:
  static constexpr unsigned kMaxRanges = 8;

  // Adds [start, end); empty ranges and those past the eighth are left out.
  void add(uintptr_t start, uintptr_t end) {
    if (start < end && count_ < kMaxRanges) ranges_[count_++] = {start, end};
  }

  // End of the range that holds [address, address + size), 0 when none does.
  uintptr_t end_of(uintptr_t address, size_t size) const {
    for (unsigned i = 0; i < count_; ++i) {
      const Range& range = ranges_[i];
      if (address >= range.start && address <= range.end && size <= range.end - address) {
        return range.end;
      }
    }
    return 0;
  }
  bool contains(uintptr_t address, size_t size) const { return end_of(address, size) != 0; }
  bool empty() const { return count_ == 0; }

 private:
  struct Range {
    uintptr_t start;
    uintptr_t end;
  };
  Range ranges_[kMaxRanges] = {};
  unsigned count_ = 0;
};

}  // namespace mtrace::unwind
