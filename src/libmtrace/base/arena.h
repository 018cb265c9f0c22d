// Memory that only grows: table memory in chunks of 1 MiB, never moved and never given back,
// addressed by a 32-bit index so that the content can be mapped at other addresses. Lock-free;
// async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "base/table_memory.h"

namespace mtrace {

class Arena {
 public:
  static constexpr uint32_t kUnit = 64;  // bytes per index step; allocations are aligned to it
  static constexpr uint32_t kChunkUnits = 1u << 14;
  static constexpr uint32_t kMaxChunks = 4096;  // 4 GiB in all

  // Index of zeroed memory of `bytes` (at most a chunk), or 0 when the kernel gives no more.
  uint32_t allocate(size_t bytes) {
    const auto units = static_cast<uint32_t>((bytes + kUnit - 1) / kUnit);
    uint32_t old = load(next_);
    for (;;) {
      uint32_t start = old == 0 ? 1 : old;  // index 0 means none
      if (start % kChunkUnits + units > kChunkUnits)
        start = (start / kChunkUnits + 1) * kChunkUnits;
      if (!ensure_chunk(start / kChunkUnits)) return 0;
      if (compare_exchange(next_, old, start + units)) return start;
    }
  }

  // All indices so far are below.
  uint32_t limit() const { return load(next_); }

  // An array of the chunks' addresses, kMaxChunks of them.
  const void* chunks() const { return chunks_; }

  void* at(uint32_t index) const {
    return load(chunks_[index / kChunkUnits]) + size_t{index % kChunkUnits} * kUnit;
  }

 private:
  bool ensure_chunk(uint32_t chunk) {
    return chunk < kMaxChunks &&
           sys::table_memory(chunks_[chunk], size_t{kChunkUnits} * kUnit) != nullptr;
  }

  uint32_t next_ = 0;
  char* chunks_[kMaxChunks] = {};
};

}  // namespace mtrace
