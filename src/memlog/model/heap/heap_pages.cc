#include "model/heap/heap_pages.h"

namespace mtrace::heap {
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

size_t SizeHistogram::class_of(uint64_t size) { return static_cast<size_t>(std::bit_width(size)); }

uint64_t SizeHistogram::least(size_t number) {
  return number == 0 ? 0 : uint64_t{1} << (number - 1);
}

uint64_t SizeHistogram::most(size_t number) { return number == 0 ? 0 : least(number) * 2 - 1; }

void SizeHistogram::add(uint64_t size) {
  SizeClass& one = classes_[class_of(size)];
  ++one.blocks;
  one.bytes += size;
  ++blocks_;
  bytes_ += size;
}

void SizeHistogram::add(const SizeHistogram& more) {
  for (size_t i = 0; i < kClasses; ++i) {
    classes_[i].blocks += more.classes_[i].blocks;
    classes_[i].bytes += more.classes_[i].bytes;
  }
  blocks_ += more.blocks_;
  bytes_ += more.bytes_;
}

void BlockSizes::add(uint32_t stack, uint64_t size) { stacks_[stack].add(size); }

std::vector<StackSizes> BlockSizes::stacks(bool by_size) const {
  std::vector<StackSizes> out;
  for (const auto& [stack, sizes] : stacks_) out.push_back({stack, sizes});
  const auto key = [by_size](const StackSizes& one) {
    return std::tuple(by_size ? one.sizes.average() : one.sizes.bytes(), one.sizes.bytes());
  };
  std::sort(out.begin(), out.end(), [&](const StackSizes& a, const StackSizes& b) {
    return key(a) != key(b) ? key(a) > key(b) : a.stack < b.stack;
  });
  return out;
}

}  // namespace mtrace::heap
