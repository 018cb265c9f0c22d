// What the allocator lets the program use of a block. Thread-safe; async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"

namespace mtrace::hook {

namespace internal {
[[gnu::visibility("hidden")]] extern bool g_size_is_below;
size_t ask_for_usable_size(void* block);
// A branch, so that the usual way does not wait for a choice.
[[gnu::noinline, gnu::cold]] inline uint64_t no_slack() {
  asm volatile("");
  return 0;
}
}  // namespace internal

// From now on the word below a block is not read: not every block is malloc's. While no other
// thread counts.
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

// Usable less requested bytes of a live block of the real allocator; 0: not known.
[[gnu::always_inline]] inline uint64_t slack_of(void* block, uint64_t size) {
  const size_t usable = usable_size(block);
  if (usable < size) [[unlikely]]
    return internal::no_slack();
  return usable - size;
}

}  // namespace mtrace::hook
