// Finds the live block that an address points into.
#pragma once

#include <algorithm>
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
  // are fewer than 2^32 of them, in the lower half of the address space. Their addresses are
  // multiples of 8.
  explicit BlockIndex(const std::vector<HeapBlock>& blocks);

  // Returns the index of the block that holds `address`, or kNone.
  size_t find(uint64_t address) const {
    const uint32_t* granule = granule_of(address);
    return granule == nullptr ? kNone : find_in(granule, address);
  }

  // Calls visit(i, block) for each words[i] that, without the bits that are not in `mask`, points
  // into a block. Faster than find() for each: the processor fetches what several of them need at a
  // time.
  template <typename Visit>
  void find_each(const uint64_t* words, size_t count, uint64_t mask, const Visit& visit) const;

  // Whether the number may be the exclusive or of the addresses of two blocks.
  static bool may_be_difference(uint64_t number) {
    return number != 0 && number % 8 == 0 && number >> kAddressBits == 0;
  }

 private:
  static constexpr unsigned kGranuleBits = 11;
  static constexpr unsigned kPartBits = 30;
  static constexpr unsigned kAddressBits = 47;
  static constexpr size_t kMostInGranule = (size_t{1} << kGranuleBits) / 8 + 1;
  static constexpr size_t kGranules = size_t{1} << (kPartBits - kGranuleBits);
  // Of each granule of addresses 1 + the first block that reaches into it; 0: none does, or it is
  // the last, which is of no granule.
  using Part = std::array<uint32_t, kGranules + 1>;

  // Where the index has the granule of the address; nullptr: no block is near.
  const uint32_t* granule_of(uint64_t address) const {
    const uint64_t high = address >> kPartBits;
    if (high >= parts_.size() || parts_[high] == nullptr) return nullptr;
    return &(*parts_[high])[address >> kGranuleBits & (kGranules - 1)];
  }
  // What begins in the granule lies before the first block of the next one.
  static size_t end_of(const uint32_t* granule) {
    return granule[1] != 0 ? granule[1] : granule[0] + kMostInGranule;
  }
  size_t find_in(const uint32_t* granule, uint64_t address) const {
    return *granule == 0 ? kNone : search(*granule - 1, end_of(granule), address);
  }
  size_t search(size_t first, size_t end, uint64_t address) const;

  const std::vector<HeapBlock>& blocks_;
  std::vector<std::unique_ptr<Part>> parts_;
};

template <typename Visit>
void BlockIndex::find_each(const uint64_t* words, size_t count, uint64_t mask,
                           const Visit& visit) const {
  constexpr size_t kAtATime = 64;
  struct Sought {
    size_t word;
    const uint32_t* granule;
  };
  std::array<Sought, kAtATime> sought;
  for (size_t begin = 0; begin < count; begin += kAtATime) {
    const size_t end = std::min(count, begin + kAtATime);
    size_t left = 0;
    for (size_t i = begin; i < end; ++i) {
      const uint32_t* granule = granule_of(words[i] & mask);
      if (granule == nullptr) continue;
      __builtin_prefetch(granule);
      sought[left++] = {i, granule};
    }
    for (size_t i = 0; i < left; ++i) {
      const size_t first = *sought[i].granule;
      if (first != 0) __builtin_prefetch(&blocks_[(first - 1 + end_of(sought[i].granule)) / 2]);
    }
    for (size_t i = 0; i < left; ++i) {
      const size_t block = find_in(sought[i].granule, words[sought[i].word] & mask);
      if (block != kNone) visit(sought[i].word, block);
    }
  }
}

}  // namespace mtrace::analyze
