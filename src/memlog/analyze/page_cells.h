// What lies on the pages of a heap, for a picture: by cells of one page or several.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/block_index.h"
#include "analyze/pinned_pages.h"

namespace mtrace::analyze {

struct PageCell {
  uint64_t resident = 0;  // pages
  uint64_t live = 0;      // bytes that blocks take, at most those of the cell
  uint32_t stack = 0;     // that takes most of it; 0: there is no block
  uint32_t oldest = 0;    // packed ticks of the oldest block's birth, if there is one
};

// Returns a cell for each `pages` pages of the heap; the last one may have fewer. `blocks` are
// sorted by address; those outside the heap are skipped.
std::vector<PageCell> page_cells(const std::vector<HeapBlock>& blocks, const HeapPages& heap,
                                 uint64_t pages);

}  // namespace mtrace::analyze
