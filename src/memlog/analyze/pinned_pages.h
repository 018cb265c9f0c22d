// Whose blocks keep the pages of a heap in memory. A page can be given back to the system only when
// no live block lies on it. A stack that alone has blocks on a page pins it; a page on which k
// stacks have blocks counts as a k-th of a page for each.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <span>
#include <vector>

#include "analyze/block_index.h"

namespace mtrace::analyze {

inline constexpr uint64_t kHeapPage = 4096;  // bytes
// The size field of glibc's malloc in front of a block is used while the block is.
inline constexpr uint64_t kBlockHeader = 8;  // bytes

// A part of a heap, and which of its pages are in memory.
struct HeapPages {
  uint64_t begin;  // a multiple of kHeapPage
  std::vector<bool> resident;
  uint64_t header = kBlockHeader;  // bytes in front of a block that are used with it
};

// The blocks that begin in the heap, of all, which are sorted by address.
std::span<const HeapBlock> blocks_in(const std::vector<HeapBlock>& blocks, const HeapPages& heap);

struct StackPages {
  uint64_t alone = 0;   // resident pages with blocks of this stack only
  uint64_t common = 0;  // resident pages with blocks of others, too
  double share = 0;     // its part of those, in pages
};

struct PinnedPages {
  absl::flat_hash_map<uint32_t, StackPages> stacks;
  // Resident pages:
  uint64_t alone = 0;             // pinned by one stack
  uint64_t common = 0;            // pinned by several
  uint64_t free = 0;              // without a live block
  std::vector<uint64_t> free_in;  // the same, by heap

  uint64_t resident() const { return alone + common + free; }
};

// `blocks` are sorted by address; those outside of `heaps` are skipped. `heaps` do not overlap.
PinnedPages pinned_pages(const std::vector<HeapBlock>& blocks, const std::vector<HeapPages>& heaps);

}  // namespace mtrace::analyze
