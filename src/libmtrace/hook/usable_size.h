// What the allocator lets the program use of a block. Thread-safe; async-signal-safe.
#pragma once

#include <cstddef>

#include "base/atomic.h"

namespace mtrace::hook {

namespace internal {
[[gnu::visibility("hidden")]] extern bool g_size_is_below;
size_t ask_for_usable_size(void* block);
}  // namespace internal

// From now on the word below a block is not read: not every block is malloc's. While no other thread
// counts.
void always_ask_for_usable_size();

// Bytes of a live block of the real allocator that may be used; 0: not known.
inline size_t usable_size(void* block) {
  constexpr size_t kMapped = 2;
  constexpr size_t kFlags = 7;
  if (load(internal::g_size_is_below)) [[likely]] {
    const size_t word = load(static_cast<const size_t*>(block)[-1]);
    if ((word & kMapped) == 0) [[likely]]
      return (word & ~kFlags) - sizeof word;
  }
  return internal::ask_for_usable_size(block);
}

}  // namespace mtrace::hook
