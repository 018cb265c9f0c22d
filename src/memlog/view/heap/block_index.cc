#include "view/heap/block_index.h"

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
    std::shared_ptr<Part> full;  // of this block alone
    for (uint64_t granule = first; granule <= last; ++granule) {
      const uint64_t high = granule >> (kPartBits - kGranuleBits);
      if (high >= parts_.size()) return;
      if (granule % kGranules == 0 && granule != first && granule + kGranules <= last) {
        if (full == nullptr) {
          full = std::make_shared<Part>();
          full->fill(static_cast<uint32_t>(i + 1));
        }
        parts_[high] = full;
        granule += kGranules - 1;
        continue;
      }
      if (parts_[high] == nullptr) parts_[high] = std::make_shared<Part>();
      uint32_t& place = (*parts_[high])[granule & (kGranules - 1)];
      if (place == 0) place = static_cast<uint32_t>(i + 1);
    }
  }
}

// `from` is a block of the granule: the one that is sought is a few before or behind it.
size_t BlockIndex::search(size_t from, uint64_t address) const {
  const HeapBlock* at = &blocks_[from];
  const HeapBlock* const end = blocks_.data() + blocks_.size();
  while (at->address > address && at != blocks_.data()) --at;
  while (at + 1 != end && at[1].address <= address) ++at;
  if (address < at->address || address > last_byte(*at)) return kNone;
  return static_cast<size_t>(at - blocks_.data());
}

}  // namespace mtrace::analyze
