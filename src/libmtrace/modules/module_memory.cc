#include "modules/module_memory.h"

#include <atomic>
#include <cstdint>

#include "base/syscall.h"

namespace mtrace::unwind {
namespace {

constexpr size_t kChunk = 64 * 1024;

std::atomic<uintptr_t> chunk{0};  // position of the next free byte, 0 or a multiple of kChunk: none

}  // namespace

void* module_memory(size_t size) {
  size = (size + 15) & ~size_t{15};
  for (;;) {
    uintptr_t at = chunk.load(std::memory_order_relaxed);
    if (at % kChunk != 0 && kChunk - at % kChunk >= size) {
      if (chunk.compare_exchange_weak(at, at + size, std::memory_order_relaxed)) {
        return reinterpret_cast<void*>(at);
      }
      continue;
    }
    // Twice the size, so that a chunk on its own boundary is inside; untouched pages are free.
    void* memory = sys::map_memory(2 * kChunk);
    if (memory == nullptr) return nullptr;
    const uintptr_t start = (reinterpret_cast<uintptr_t>(memory) + kChunk - 1) & ~(kChunk - 1);
    // 16 bytes stay unused: a position on the boundary means that the chunk is full.
    if (!chunk.compare_exchange_strong(at, start + 16, std::memory_order_relaxed)) {
      sys::unmap_memory(memory, 2 * kChunk);
    }
  }
}

}  // namespace mtrace::unwind
