#include "analyze/page_cells.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>

namespace mtrace::analyze {
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

}  // namespace mtrace::analyze
