// Memory for calls that come before the real allocator is known: before relocation (from other
// objects' IFUNC resolvers) and while dlsym looks the allocator up. Never freed; not counted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"

namespace mtrace::hook {

class Bootstrap {
 public:
  // Returns a zeroed block, aligned to at least 16 bytes; nullptr: all memory is used.
  void* allocate(size_t size, size_t alignment) {
    if (alignment < kHeader) alignment = kHeader;
    if (size > sizeof memory_ || alignment > sizeof memory_) return nullptr;
    const auto base = reinterpret_cast<uintptr_t>(memory_);
    uint32_t old = load(used_);
    for (;;) {
      const uintptr_t start = (base + old + kHeader + alignment - 1) & ~(alignment - 1);
      const uintptr_t next = (start - base + size + kHeader - 1) & ~(kHeader - 1);
      if (next > sizeof memory_) return nullptr;
      if (compare_exchange(used_, old, static_cast<uint32_t>(next))) {
        reinterpret_cast<size_t*>(start)[-1] = size;
        return reinterpret_cast<void*>(start);
      }
    }
  }
  bool owns(const void* block) const {
    return reinterpret_cast<uintptr_t>(block) - reinterpret_cast<uintptr_t>(memory_) <
           sizeof memory_;
  }
  // Calls visit(address) for each 16 bytes that have been handed out.
  template <typename Visit>
  void each_granule(Visit&& visit) const {
    for (uint32_t at = 0; at < load(used_); at += kHeader) visit(memory_ + at);
  }
  static size_t size(const void* block) { return static_cast<const size_t*>(block)[-1]; }

 private:
  static constexpr uintptr_t kHeader = 16;  // the block's size stands in front of it
  uint32_t used_ = 0;
  alignas(16) char memory_[64 * 1024] = {};
};

extern Bootstrap g_bootstrap;

}  // namespace mtrace::hook
