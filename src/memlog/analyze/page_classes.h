// Sorts the pages of heaps into classes, each of which has a colour in a picture.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "analyze/block_index.h"
#include "analyze/page_cells.h"
#include "analyze/pinned_pages.h"

namespace mtrace::analyze {

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

}  // namespace mtrace::analyze
