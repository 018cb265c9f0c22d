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
  uint32_t birth;  // packed ticks: ledger::LedgerBlock::packed_birth
};
static_assert(sizeof(HeapBlock) == 24);

class BlockIndex {
 public:
  static constexpr size_t kNone = SIZE_MAX;

  // `blocks` are sorted by address and do not overlap; they must outlive this and not move. There
  // are fewer than 2^31 of them, in the lower half of the address space. Their addresses are
  // multiples of 8.
  explicit BlockIndex(const std::vector<HeapBlock>& blocks);

  // Returns the index of the block that holds `address`, or kNone.
  size_t find(uint64_t address) const {
    const uint32_t* granule = granule_of(address);
    return granule == nullptr ? kNone : find_in(granule, address);
  }

  // The same, but kNone, too, in a range that is settled.
  size_t find_unsettled(uint64_t address) const {
    const uint32_t* granule = granule_of(address);
    return granule == nullptr || *granule >= kSettled ? kNone : find_in(granule, address);
  }

  // Settles the range of 2 KiB around `address`, which lies in a block, if is_done(block) for all
  // blocks there: nobody looks for them any more. Most pointers of a heap lead to blocks that are
  // known long since, and cost no search from then on.
  template <typename IsDone>
  void settle(uint64_t address, const IsDone& is_done);

  // Whether the number may be the exclusive or of the addresses of two blocks.
  static bool may_be_difference(uint64_t number) {
    return number != 0 && number % 8 == 0 && number >> kAddressBits == 0;
  }

 private:
  friend class PointerBatch;
  static constexpr unsigned kGranuleBits = 11;
  static constexpr unsigned kPartBits = 30;
  static constexpr unsigned kAddressBits = 48;
  static constexpr size_t kMostInGranule = (size_t{1} << kGranuleBits) / 8 + 1;
  static constexpr size_t kGranules = size_t{1} << (kPartBits - kGranuleBits);
  static constexpr uint32_t kSettled = uint32_t{1} << 31;
  // Of each granule of addresses 1 + the first block that reaches into it, and whether it is
  // settled; 0: none does, or it is the last, which is of no granule.
  using Part = std::array<uint32_t, kGranules + 1>;

  // Where the index has the granule of the address; nullptr: no block is near.
  const uint32_t* granule_of(uint64_t address) const {
    const uint64_t high = address >> kPartBits;
    if (high >= parts_.size() || parts_[high] == nullptr) return nullptr;
    return &(*parts_[high])[address >> kGranuleBits & (kGranules - 1)];
  }
  static size_t number_of(uint32_t granule) { return granule & ~kSettled; }
  // What begins in the granule lies before the first block of the next one.
  size_t end_of(const uint32_t* granule) const {
    const size_t next = number_of(granule[1]);
    return std::min(blocks_.size(), next != 0 ? next : number_of(*granule) + kMostInGranule);
  }
  // Where the block would be if those of the granule, which has some, were equally large.
  size_t guess(const uint32_t* granule, uint64_t address) const {
    const size_t first = number_of(*granule) - 1;
    const uint64_t offset = address & ((uint64_t{1} << kGranuleBits) - 1);
    return first + ((end_of(granule) - first) * offset >> kGranuleBits);
  }
  size_t find_in(const uint32_t* granule, uint64_t address) const {
    return *granule == 0 ? kNone : search(guess(granule, address), address);
  }
  size_t search(size_t from, uint64_t address) const;

  const std::vector<HeapBlock>& blocks_;
  // Those that one block fills are one and the same.
  std::vector<std::shared_ptr<Part>> parts_;
};

template <typename IsDone>
void BlockIndex::settle(uint64_t address, const IsDone& is_done) {
  uint32_t* const granule = const_cast<uint32_t*>(granule_of(address));
  for (size_t block = number_of(*granule) - 1; block < end_of(granule); ++block) {
    if (!is_done(block)) return;
  }
  *granule |= kSettled;
}

// Finds the blocks of many addresses, in the order in which they come, but not in settled ranges.
// Faster than one after the other: the processor fetches what several of them need at a time.
class PointerBatch {
 public:
  // The index must outlive this.
  explicit PointerBatch(const BlockIndex& index) : index_(index) {}

  // visit() will look at `values[block]`. The vector must not move. At most two.
  template <typename Value>
  void expect(const std::vector<Value>& values) {
    expected_[expects_++] = {reinterpret_cast<const char*>(values.data()), sizeof(Value)};
  }

  // Has visit(address, via, block) called, at the latest in finish(), if a block holds `address`.
  template <typename Visit>
  void add(uint64_t address, uint64_t via, const Visit& visit) {
    const uint32_t* granule = index_.granule_of(address);
    if (granule == nullptr) return;
    __builtin_prefetch(granule);
    sought_[count_++] = {address, via, granule};
    if (count_ == sought_.size()) finish(visit);
  }

  template <typename Visit>
  void finish(const Visit& visit) {
    size_t left = 0;
    for (size_t i = 0; i < count_; ++i) {
      const uint32_t first = *sought_[i].granule;
      if (first == 0 || first >= BlockIndex::kSettled) continue;
      const size_t guess = index_.guess(sought_[i].granule, sought_[i].address);
      __builtin_prefetch(&index_.blocks_[guess]);
      sought_[left++] = sought_[i];
    }
    size_t found = 0;
    for (size_t i = 0; i < left; ++i) {
      const size_t block = index_.find_in(sought_[i].granule, sought_[i].address);
      if (block == BlockIndex::kNone) continue;
      for (size_t j = 0; j < expects_; ++j) {
        __builtin_prefetch(expected_[j].values + block * expected_[j].size);
      }
      blocks_[found] = block;
      sought_[found++] = sought_[i];
    }
    count_ = 0;
    for (size_t i = 0; i < found; ++i) visit(sought_[i].address, sought_[i].via, blocks_[i]);
  }

 private:
  struct Sought {
    uint64_t address;
    uint64_t via;
    const uint32_t* granule;
  };

  const BlockIndex& index_;
  struct Values {
    const char* values;
    size_t size;  // of each, bytes
  };
  static constexpr size_t kAtATime = 64;
  std::array<Sought, kAtATime> sought_;
  std::array<size_t, kAtATime> blocks_;
  size_t count_ = 0;
  std::array<Values, 2> expected_;
  size_t expects_ = 0;
};

}  // namespace mtrace::analyze
