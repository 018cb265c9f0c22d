// MTRACE_FILL: memory that has no content yet is filled, so that a program that reads it does the
// same each time.
#pragma once

#include <cstddef>

namespace mtrace::hook {

inline int g_fill = -1;  // the byte; -1: none

void fill(void* block, size_t from, size_t size);

// Fills a block of `size` bytes (nullptr: the allocation failed) from byte `from` on, to the end of
// what is usable of it, and returns it.
inline void* filled(void* block, size_t from, size_t size) {
  if (g_fill >= 0 && block != nullptr) [[unlikely]]
    fill(block, from, size);
  return block;
}

// Bytes of a block (nullptr: none) that may have content; without MTRACE_FILL any number. A program
// may use all that malloc_usable_size() gives it, so it is that where it is known; otherwise
// `requested`, or all of it when that is 0.
size_t content_of(void* block, size_t requested);
inline size_t content_size(void* block, size_t requested) {
  if (g_fill >= 0 && block != nullptr) [[unlikely]]
    return content_of(block, requested);
  return 0;
}

}  // namespace mtrace::hook
