#include "analyze/block_index.h"

#include <algorithm>

namespace mtrace::analyze {
namespace {

uint64_t last_byte(const HeapBlock& block) {
  return block.address + (block.size == 0 ? 0 : block.size - 1);
}

}  // namespace

BlockIndex::BlockIndex(const std::vector<HeapBlock>& blocks)
    : blocks_(blocks), parts_(size_t{1} << (kAddressBits - kPartBits)) {
  for (size_t i = 0; i < blocks.size(); ++i) {
    const uint64_t first = blocks[i].address >> kGranuleBits;
    const uint64_t last = last_byte(blocks[i]) >> kGranuleBits;
    for (uint64_t granule = first; granule <= last; ++granule) {
      const uint64_t high = granule >> (kPartBits - kGranuleBits);
      if (high >= parts_.size()) return;
      if (parts_[high] == nullptr) parts_[high] = std::make_unique<Part>();
      uint32_t& place = (*parts_[high])[granule & (kGranules - 1)];
      if (place == 0) place = static_cast<uint32_t>(i + 1);
    }
  }
}

// The block is among the first..end - 1, if there is one.
size_t BlockIndex::search(size_t first, size_t end, uint64_t address) const {
  const auto begin = blocks_.begin() + static_cast<ptrdiff_t>(first);
  const auto behind = std::upper_bound(
      begin, blocks_.begin() + static_cast<ptrdiff_t>(std::min(blocks_.size(), end)), address,
      [](uint64_t wanted, const HeapBlock& block) { return wanted < block.address; });
  if (behind == begin) return kNone;
  const HeapBlock& block = *(behind - 1);
  return address <= last_byte(block) ? static_cast<size_t>(behind - 1 - blocks_.begin()) : kNone;
}

}  // namespace mtrace::analyze
