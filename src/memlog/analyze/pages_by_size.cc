#include "analyze/pages_by_size.h"

#include <algorithm>
#include <bit>
#include <map>

namespace mtrace::analyze {
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
