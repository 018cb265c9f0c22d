// How full the pages of each size class are. jemalloc, tcmalloc, mimalloc and the like fill a page
// with blocks of one size, so that a page with few of them is lost to all other sizes, and stays
// while one of them lives.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/pinned_pages.h"

namespace mtrace::analyze {

struct PagesOfSize {
  uint64_t largest = 0;  // bytes that a block of the class may have
  uint64_t blocks = 0;
  uint64_t live = 0;   // bytes requested
  uint64_t pages = 0;  // resident, with blocks of this class and of no other
  uint64_t taken = 0;  // bytes of blocks on these pages

  uint64_t free() const { return pages * kHeapPage - taken; }
};

// The largest size of the class of a block: steps of 16 bytes up to 128, then four for each power
// of two, as jemalloc's and tcmalloc's classes are (theirs and mimalloc's differ in some steps, and
// memlog does not read them).
uint64_t largest_of_class(uint64_t size);

// Classes with blocks, those with most free bytes first. `blocks` are sorted by address; those
// outside of `heaps` are skipped.
std::vector<PagesOfSize> pages_by_size(const std::vector<HeapBlock>& blocks,
                                       const std::vector<HeapPages>& heaps);

}  // namespace mtrace::analyze
