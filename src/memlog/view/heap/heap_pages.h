// The pages of heaps: whose blocks keep them in memory, what lies on them, how full they are.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "view/heap/block_index.h"

namespace mtrace::analyze {

// Whose blocks keep the pages of a heap in memory. A page can be given back to the system only when
// no live block lies on it. A stack that alone has blocks on a page pins it; a page on which k
// stacks have blocks counts as a k-th of a page for each.

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

// What lies on the pages of a heap, for a picture: by cells of one page or several.

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

// Sorts the pages of heaps into classes, each of which has a colour in a picture.

// What a class tells of a page with blocks: whose blocks take most of it, the age of the oldest, or
// how much of it blocks take.
enum class PageColours { kStack, kAge, kOccupancy };

class PageClasses {
 public:
  static constexpr uint8_t kAbsent = 0;  // no page is resident
  static constexpr uint8_t kFree = 1;    // resident, without a live block
  static constexpr uint8_t kFirst = 2;   // of those that depend on PageColours

  // From here on a page belongs to the next class. Milliseconds: a second, a minute, ten, an hour,
  // a day.
  static constexpr std::array<uint64_t, 5> kAges = {1000, 60'000, 600'000, 3'600'000, 86'400'000};
  static constexpr unsigned kOccupancies = 4;  // a quarter of the page each
  static constexpr size_t kMostOwners = 8;     // behind them is a class for all other stacks

  // `blocks` are sorted by address; `now` in ticks.
  PageClasses(const std::vector<HeapBlock>& blocks, const std::vector<HeapPages>& heaps,
              PageColours colours, uint64_t now);

  uint64_t pages() const { return pages_; }  // of a cell
  // By heap, in the order of `heaps`: the class of each cell.
  const std::vector<std::vector<uint8_t>>& heaps() const { return heaps_; }
  // With kStack: the stacks that have a class of their own, those with most cells first.
  const std::vector<uint32_t>& owners() const { return owners_; }

 private:
  static constexpr uint64_t kMostCells = 64 * 1024;

  void find_owners(const std::vector<std::vector<PageCell>>& heaps);
  uint8_t class_of(const PageCell& cell) const;

  PageColours colours_;
  uint64_t now_;
  uint64_t pages_ = 1;
  std::vector<std::vector<uint8_t>> heaps_;
  std::vector<uint32_t> owners_;
};

// How full the pages of each size class are. jemalloc, tcmalloc, mimalloc and the like fill a page
// with blocks of one size, so that a page with few of them is lost to all other sizes, and stays
// while one of them lives.

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
