// The usable size of a block. Thread-safe; async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"

namespace mtrace::hook {

namespace internal {
[[gnu::visibility("hidden")]] extern bool g_size_is_below;
size_t ask_for_usable_size(void* block);
uint64_t ask_for_slack(void* block, uint64_t size);

// Flags that glibc's malloc keeps in the word below a block.
inline constexpr size_t kChunkMapped = 2;
inline constexpr size_t kChunkFlags = 7;
}  // namespace internal

// Stops reading the word below a block: not every block is malloc's. Call it while no other thread
// counts.
void always_ask_for_usable_size();

// Returns the usable bytes of a live block of the real allocator; 0: not known.
inline size_t usable_size(void* block) {
  if (load(internal::g_size_is_below)) [[likely]] {
    const size_t word = load(static_cast<const size_t*>(block)[-1]);
    if ((word & internal::kChunkMapped) == 0) [[likely]]
      return (word & ~internal::kChunkFlags) - sizeof word;
  }
  return internal::ask_for_usable_size(block);
}

// Returns usable less requested bytes of a live block of the real allocator; 0: not known.
[[gnu::always_inline]] inline uint64_t slack_of(void* block, uint64_t size) {
  if (load(internal::g_size_is_below)) [[likely]] {
    const size_t word = load(static_cast<const size_t*>(block)[-1]);
    // glibc's malloc gives no less than was requested.
    if ((word & internal::kChunkMapped) == 0) [[likely]]
      return (word & ~internal::kChunkFlags) - (size + sizeof word);
  }
  return internal::ask_for_slack(block, size);
}

}  // namespace mtrace::hook
