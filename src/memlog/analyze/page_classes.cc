#include "analyze/page_classes.h"

#include <algorithm>
#include <map>

#include "live/ledger_state.h"

namespace mtrace::analyze {

PageClasses::PageClasses(const std::vector<HeapBlock>& blocks, const std::vector<HeapPages>& heaps,
                         PageColours colours, uint64_t now)
    : colours_(colours), now_(now) {
  uint64_t pages = 0;
  for (const HeapPages& heap : heaps) pages += heap.resident.size();
  pages_ = std::max<uint64_t>(1, (pages + kMostCells - 1) / kMostCells);
  std::vector<std::vector<PageCell>> cells;
  for (const HeapPages& heap : heaps) cells.push_back(page_cells(blocks, heap, pages_));
  if (colours == PageColours::kStack) find_owners(cells);
  for (const std::vector<PageCell>& heap : cells) {
    std::vector<uint8_t>& classes = heaps_.emplace_back();
    for (const PageCell& cell : heap) classes.push_back(class_of(cell));
  }
}

uint8_t PageClasses::class_of(const PageCell& cell) const {
  if (cell.resident == 0) return kAbsent;
  if (cell.live == 0) return kFree;
  if (colours_ == PageColours::kStack) {
    const auto found = std::find(owners_.begin(), owners_.end(), cell.stack);
    return static_cast<uint8_t>(kFirst + (found - owners_.begin()));
  }
  if (colours_ == PageColours::kOccupancy) {
    const uint64_t part = cell.live * kOccupancies / (pages_ * kHeapPage);
    return static_cast<uint8_t>(kFirst + std::min<uint64_t>(kOccupancies - 1, part));
  }
  const uint64_t birth = live::unpack_ticks(cell.oldest);
  const uint64_t age = birth < now_ ? live::tick_milliseconds(now_ - birth) : 0;
  const auto limit = std::upper_bound(kAges.begin(), kAges.end(), age);
  return static_cast<uint8_t>(kFirst + (limit - kAges.begin()));
}

void PageClasses::find_owners(const std::vector<std::vector<PageCell>>& heaps) {
  std::map<uint32_t, uint64_t> cells;
  for (const std::vector<PageCell>& heap : heaps) {
    for (const PageCell& cell : heap) {
      if (cell.resident != 0 && cell.live != 0) ++cells[cell.stack];
    }
  }
  for (const auto& [stack, count] : cells) owners_.push_back(stack);
  std::stable_sort(owners_.begin(), owners_.end(),
                   [&](uint32_t a, uint32_t b) { return cells[a] > cells[b]; });
  if (owners_.size() > kMostOwners) owners_.resize(kMostOwners);
}

}  // namespace mtrace::analyze
