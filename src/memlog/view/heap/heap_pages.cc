#include "view/heap/heap_pages.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <bit>
#include <map>

#include "model/ledger/ledger_state.h"

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
  const uint64_t birth = ledger::unpack_ticks(cell.oldest);
  const uint64_t age = birth < now_ ? ledger::tick_milliseconds(now_ - birth) : 0;
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
namespace {

// Goes through the cells of a heap, in order.
class Cells {
 public:
  Cells(const HeapPages& heap, uint64_t pages) : bytes_(pages * kHeapPage) {
    const uint64_t count = (heap.resident.size() + pages - 1) / pages;
    cells_.resize(count);
    for (size_t i = 0; i < heap.resident.size(); ++i) {
      if (heap.resident[i]) ++cells_[i / pages].resident;
    }
  }

  // Bytes are counted from the beginning of the heap.
  void add(uint64_t begin, uint64_t end, const HeapBlock& block) {
    for (uint64_t cell = begin / bytes_; cell * bytes_ < end; ++cell) {
      if (cell != cell_) leave(cell);
      const uint64_t part = std::min(end, (cell + 1) * bytes_) - std::max(begin, cell * bytes_);
      PageCell& at = cells_[cell];
      at.oldest = at.live == 0 ? block.birth : std::min(at.oldest, block.birth);
      at.live += part;
      stacks_[block.stack] += part;
    }
  }
  std::vector<PageCell> finish() {
    leave(cells_.size());
    return std::move(cells_);
  }

 private:
  void leave(uint64_t next) {
    uint64_t most = 0;
    for (const auto& [stack, bytes] : stacks_) {
      PageCell& at = cells_[cell_];
      if (bytes < most || (bytes == most && stack > at.stack)) continue;
      most = bytes;
      at.stack = stack;
    }
    stacks_.clear();
    cell_ = next;
  }

  uint64_t bytes_;  // of a cell
  std::vector<PageCell> cells_;
  uint64_t cell_ = 0;
  absl::flat_hash_map<uint32_t, uint64_t> stacks_;  // bytes of each in that cell
};

}  // namespace

std::vector<PageCell> page_cells(const std::vector<HeapBlock>& blocks, const HeapPages& heap,
                                 uint64_t pages) {
  const uint64_t size = heap.resident.size() * kHeapPage;
  Cells cells(heap, pages);
  for (const HeapBlock& block : blocks_in(blocks, heap)) {
    const uint64_t begin = block.address - heap.header - heap.begin;
    const uint64_t end = block.address - heap.begin + std::max<uint64_t>(block.size, 1);
    cells.add(begin, std::min(end, size), block);
  }
  return cells.finish();
}
namespace {

// Goes through the pages of one heap, in order.
class Pages {
 public:
  Pages(const HeapPages& heap, PinnedPages& sum) : heap_(heap), sum_(sum) {}

  // Pages are counted from the beginning of the heap.
  void add(uint64_t first, uint64_t last, uint32_t stack) {
    for (uint64_t page = first; page <= last; ++page) {
      if (page != page_) advance(page);
      if (std::find(stacks_.begin(), stacks_.end(), stack) == stacks_.end()) {
        stacks_.push_back(stack);
      }
    }
  }
  void finish() { advance(heap_.resident.size()); }

 private:
  void advance(uint64_t page) {
    for (; page_ < page; ++page_) {
      count();
      stacks_.clear();
    }
  }

  void count() {
    if (!heap_.resident[page_]) return;
    const size_t stacks = stacks_.size();
    ++(stacks == 0 ? sum_.free : stacks == 1 ? sum_.alone : sum_.common);
    for (const uint32_t stack : stacks_) {
      StackPages& pages = sum_.stacks[stack];
      if (stacks == 1) {
        ++pages.alone;
      } else {
        ++pages.common;
        pages.share += 1.0 / static_cast<double>(stacks);
      }
    }
  }

  const HeapPages& heap_;
  PinnedPages& sum_;
  uint64_t page_ = 0;
  std::vector<uint32_t> stacks_;  // with blocks on that page
};

}  // namespace

std::span<const HeapBlock> blocks_in(const std::vector<HeapBlock>& blocks, const HeapPages& heap) {
  const auto before = [](const HeapBlock& one, uint64_t address) { return one.address < address; };
  const uint64_t end = heap.begin + heap.resident.size() * kHeapPage;
  const auto first =
      std::lower_bound(blocks.begin(), blocks.end(), heap.begin + heap.header, before);
  return {first, std::lower_bound(first, blocks.end(), end, before)};
}

PinnedPages pinned_pages(const std::vector<HeapBlock>& blocks,
                         const std::vector<HeapPages>& heaps) {
  PinnedPages sum;
  for (const HeapPages& heap : heaps) {
    const uint64_t end = heap.begin + heap.resident.size() * kHeapPage;
    const uint64_t free_before = sum.free;
    Pages pages(heap, sum);
    for (const HeapBlock& block : blocks_in(blocks, heap)) {
      const uint64_t last = std::min(block.address + std::max<uint64_t>(block.size, 1), end) - 1;
      pages.add((block.address - heap.header - heap.begin) / kHeapPage,
                (last - heap.begin) / kHeapPage, block.stack);
    }
    pages.finish();
    sum.free_in.push_back(sum.free - free_before);
  }
  return sum;
}
namespace {

struct Page {
  PagesOfSize* only = nullptr;  // whose blocks are on it
  bool mixed = false;
  uint64_t taken = 0;
};

void put(std::vector<Page>& pages, const HeapPages& heap, const HeapBlock& block,
         PagesOfSize& own) {
  const uint64_t size = std::max<uint64_t>(block.size, 1);
  const uint64_t end = std::min(block.address - heap.begin + size, pages.size() * kHeapPage);
  for (uint64_t at = block.address - heap.begin; at < end;) {
    Page& page = pages[at / kHeapPage];
    const uint64_t next = std::min(end, (at / kHeapPage + 1) * kHeapPage);
    page.mixed |= page.only != nullptr && page.only != &own;
    page.only = &own;
    page.taken += next - at;
    at = next;
  }
}

}  // namespace

uint64_t largest_of_class(uint64_t size) {
  constexpr uint64_t kStep = 16;
  constexpr uint64_t kFine = 128;
  constexpr uint64_t kMost = uint64_t{1} << 62;
  if (size <= kFine) return std::max(kStep, (size + kStep - 1) / kStep * kStep);
  if (size > kMost) return size;
  const uint64_t step = std::bit_ceil(size) / 8;
  return (size + step - 1) / step * step;
}

std::vector<PagesOfSize> pages_by_size(const std::vector<HeapBlock>& blocks,
                                       const std::vector<HeapPages>& heaps) {
  std::map<uint64_t, PagesOfSize> classes;
  for (const HeapPages& heap : heaps) {
    std::vector<Page> pages(heap.resident.size());
    for (const HeapBlock& block : blocks_in(blocks, heap)) {
      const uint64_t largest = largest_of_class(block.size);
      PagesOfSize& own = classes[largest];
      own.largest = largest;
      ++own.blocks;
      own.live += block.size;
      put(pages, heap, block, own);
    }
    for (size_t i = 0; i < pages.size(); ++i) {
      const Page& page = pages[i];
      if (!heap.resident[i] || page.only == nullptr || page.mixed) continue;
      ++page.only->pages;
      page.only->taken += std::min(page.taken, kHeapPage);
    }
  }
  std::vector<PagesOfSize> sorted;
  for (const auto& one : classes) sorted.push_back(one.second);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const PagesOfSize& a, const PagesOfSize& b) { return a.free() > b.free(); });
  return sorted;
}

}  // namespace mtrace::analyze
