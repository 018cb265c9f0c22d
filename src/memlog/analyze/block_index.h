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
  // are fewer than 2^32 of them, in the lower half of the address space. Their addresses are multiples of 8.
  explicit BlockIndex(const std::vector<HeapBlock>& blocks);

  // Returns the index of the block that holds `address`, or kNone.
  size_t find(uint64_t address) const {
    const uint64_t high = address >> kPartBits;
    if (high >= parts_.size() || parts_[high] == nullptr) return kNone;
    const size_t granule = address >> kGranuleBits & (kGranules - 1);
    const uint32_t* first = &(*parts_[high])[granule];
    if (first[0] == 0) return kNone;
    // Those that begin in the granule: up to the first of the next one.
    const bool known = granule + 1 < kGranules && first[1] != 0;
    return search(first[0] - 1, known ? first[1] : first[0] + kMostInGranule, address);
  }
  // Whether the number may be the exclusive or of the addresses of two blocks.
  static bool may_be_difference(uint64_t number) {
    return number % 8 == 0 && number >> kAddressBits == 0;
  }

 private:
  static constexpr unsigned kGranuleBits = 11;
  static constexpr unsigned kPartBits = 30;
  static constexpr unsigned kAddressBits = 47;
  static constexpr size_t kMostInGranule = (size_t{1} << kGranuleBits) / 8 + 1;
  static constexpr size_t kGranules = size_t{1} << (kPartBits - kGranuleBits);
  // Of each granule of addresses 1 + the first block that reaches into it; 0: none does.
  using Part = std::array<uint32_t, kGranules>;

  size_t search(size_t first, size_t end, uint64_t address) const;

  const std::vector<HeapBlock>& blocks_;
  std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace mtrace::analyze
