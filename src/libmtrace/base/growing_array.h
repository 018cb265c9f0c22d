// An array that grows in chunks of kChunk elements and never moves. Elements start zeroed; memory
// is taken when a chunk is first written. Lock-free; async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "base/table_memory.h"

namespace mtrace {

template <typename T, uint32_t kPerChunk = 1u << 16, uint32_t kMost = 1u << 25>
class GrowingArray {
 public:
  static constexpr uint32_t kChunk = kPerChunk;
  static constexpr uint32_t kMaxChunks = kMost / kChunk;

  // nullptr: out of range, or the kernel gives no more memory.
  T* find_or_create(uint32_t index) {
    const uint32_t chunk = index / kChunk;
    if (chunk >= kMaxChunks) return nullptr;
    T* elements = sys::table_memory(chunks_[chunk], kChunk * sizeof(T));
    return elements == nullptr ? nullptr : elements + index % kChunk;
  }

  // An array of the chunks' addresses, kMaxChunks of them.
  const void* chunks() const { return chunks_; }

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
