// An array that grows in chunks of 65536 elements and never moves. Elements start zeroed; memory
// is taken when a chunk is first written. Lock-free; async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "base/syscall.h"

namespace mtrace {

template <typename T>
class GrowingArray {
 public:
  static constexpr uint32_t kChunk = 1u << 16;
  static constexpr uint32_t kMaxChunks = 512;

  // nullptr: out of range, or the kernel gives no more memory.
  T* find_or_create(uint32_t index) {
    const uint32_t chunk = index / kChunk;
    if (chunk >= kMaxChunks) return nullptr;
    T* elements = load_acquire(chunks_[chunk]);
    if (elements == nullptr) {
      auto* fresh = static_cast<T*>(sys::map_memory(kChunk * sizeof(T)));
      if (fresh == nullptr) return nullptr;
      if (compare_exchange(chunks_[chunk], elements, fresh)) {
        elements = fresh;
      } else {
        sys::unmap_memory(fresh, kChunk * sizeof(T));
      }
    }
    return elements + index % kChunk;
  }

  // nullptr: never created, which reads as zero.
  T* find(uint32_t index) const {
    const uint32_t chunk = index / kChunk;
    T* elements = chunk < kMaxChunks ? load_acquire(chunks_[chunk]) : nullptr;
    return elements == nullptr ? nullptr : elements + index % kChunk;
  }

 private:
  T* chunks_[kMaxChunks] = {};
};

}  // namespace mtrace
