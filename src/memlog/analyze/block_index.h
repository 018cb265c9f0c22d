// Finds the live block that an address points into.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace mtrace::analyze {

// There may be many millions.
struct HeapBlock {
  uint64_t address;
  uint64_t size;  // requested bytes; a block of 0 bytes counts as one
  uint32_t stack;
  uint32_t birth;  // packed ticks: live::LedgerBlock::packed_birth
};
static_assert(sizeof(HeapBlock) == 24);

class BlockIndex {
 public:
  static constexpr size_t kNone = SIZE_MAX;

  // `blocks` are sorted by address and do not overlap; they must outlive this and not move. There
  // are fewer than 2^32 of them, in the lower half of the address space.
  explicit BlockIndex(const std::vector<HeapBlock>& blocks);

  // Returns the index of the block that holds `address`, or kNone.
  size_t find(uint64_t address) const {
    const uint64_t high = address >> kPartBits;
    if (high >= parts_.size() || parts_[high] == nullptr) return kNone;
    const uint32_t first = (*parts_[high])[address >> kGranuleBits & (kGranules - 1)];
    return first == 0 ? kNone : search(first - 1, address);
  }

 private:
  static constexpr unsigned kGranuleBits = 16;
  static constexpr unsigned kPartBits = 30;
  static constexpr unsigned kAddressBits = 47;
  static constexpr size_t kGranules = size_t{1} << (kPartBits - kGranuleBits);
  // Of each granule of addresses 1 + the first block that reaches into it; 0: none does.
  using Part = std::array<uint32_t, kGranules>;

  size_t search(size_t first, uint64_t address) const;

  const std::vector<HeapBlock>& blocks_;
  std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace mtrace::analyze
