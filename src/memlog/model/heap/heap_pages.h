// The pages of heaps: whose blocks keep them in memory, what lies on them, how full they are.
#pragma once

#include <span>

#include "model/heap/reachability.h"
#include "util/prelude.h"

namespace mtrace::heap {

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

// How large the live blocks of each stack of a process are, in classes of powers of two.
struct SizeClass {
  uint64_t blocks = 0;
  uint64_t bytes = 0;
};

// Class 0 has the blocks of 0 bytes, class n those of 2^(n-1) to 2^n - 1 bytes.
class SizeHistogram {
 public:
  static constexpr size_t kClasses = 65;

  static size_t class_of(uint64_t size);
  static uint64_t least(size_t number);  // bytes
  static uint64_t most(size_t number);

  void add(uint64_t size);
  void add(const SizeHistogram& more);

  const std::array<SizeClass, kClasses>& classes() const { return classes_; }
  uint64_t blocks() const { return blocks_; }
  uint64_t bytes() const { return bytes_; }
  // Returns the average size of a block in bytes, rounded down; 0: there is no block.
  uint64_t average() const { return blocks_ == 0 ? 0 : bytes_ / blocks_; }

 private:
  std::array<SizeClass, kClasses> classes_ = {};
  uint64_t blocks_ = 0;
  uint64_t bytes_ = 0;
};

struct StackSizes {
  uint32_t stack;  // LedgerStackState::index
  SizeHistogram sizes;
};

class BlockSizes {
 public:
  // Counts a live block of `size` bytes.
  void add(uint32_t stack, uint64_t size);

  // Returns the stacks, those with the most bytes first or, `by_size`, those with the largest
  // blocks on average.
  std::vector<StackSizes> stacks(bool by_size) const;

 private:
  absl::flat_hash_map<uint32_t, SizeHistogram> stacks_;
};

}  // namespace mtrace::heap
