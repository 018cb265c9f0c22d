// How large the live blocks of each stack of a process are, in classes of powers of two.
#pragma once

#include "util/prelude.h"

namespace mtrace::analyze {

struct SizeClass {
  uint64_t blocks = 0;
  uint64_t bytes = 0;
};

// Class 0 has the blocks of 0 bytes, class n those of 2^(n-1) to 2^n - 1 bytes.
class SizeHistogram {
 public:
  static constexpr size_t kClasses = 65;

  static size_t class_of(uint64_t size);
  static uint64_t least(size_t number);  // bytes
  static uint64_t most(size_t number);

  void add(uint64_t size);
  void add(const SizeHistogram& more);

  const std::array<SizeClass, kClasses>& classes() const { return classes_; }
  uint64_t blocks() const { return blocks_; }
  uint64_t bytes() const { return bytes_; }
  // Returns the average size of a block in bytes, rounded down; 0: there is no block.
  uint64_t average() const { return blocks_ == 0 ? 0 : bytes_ / blocks_; }

 private:
  std::array<SizeClass, kClasses> classes_ = {};
  uint64_t blocks_ = 0;
  uint64_t bytes_ = 0;
};

struct StackSizes {
  uint32_t stack;  // LedgerStackState::index
  SizeHistogram sizes;
};

class BlockSizes {
 public:
  // Counts a live block of `size` bytes.
  void add(uint32_t stack, uint64_t size);

  // Returns the stacks, those with the most bytes first or, `by_size`, those with the largest
  // blocks on average.
  std::vector<StackSizes> stacks(bool by_size) const;

 private:
  absl::flat_hash_map<uint32_t, SizeHistogram> stacks_;
};

}  // namespace mtrace::analyze
