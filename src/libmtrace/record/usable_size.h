// The usable size of a block, and MTRACE_FILL, which fills up to it: then a program that reads
// memory without content behaves the same in each run. Thread-safe; async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"

namespace mtrace::record {

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

inline int g_fill = -1;  // the byte of MTRACE_FILL; -1: none

namespace internal {
void fill(void* block, size_t from, size_t size);
size_t content_of(void* block, size_t requested);
}  // namespace internal

// Fills a block of `size` bytes (nullptr: the allocation failed) from byte `from` to the end of its
// usable size, and returns the block.
inline void* filled(void* block, size_t from, size_t size) {
  if (g_fill >= 0 && block != nullptr) [[unlikely]]
    internal::fill(block, from, size);
  return block;
}

// Upper bound on the initialised bytes of a block (nullptr: none); unspecified without MTRACE_FILL.
// The usable size where it is known, because a program may use all of it; otherwise `requested`, or
// SIZE_MAX if that is 0.
inline size_t content_size(void* block, size_t requested) {
  if (g_fill >= 0 && block != nullptr) [[unlikely]]
    return internal::content_of(block, requested);
  return 0;
}

}  // namespace mtrace::record
