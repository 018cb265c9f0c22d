// MTRACE_FILL: fills memory that has no content yet with a byte, so that a program that reads such
// memory behaves the same in each run.
#pragma once

#include <cstddef>

namespace mtrace::hook {

inline int g_fill = -1;  // the byte; -1: none

void fill(void* block, size_t from, size_t size);

// Fills a block of `size` bytes (nullptr: the allocation failed) from byte `from` to the end of its
// usable size, and returns the block.
inline void* filled(void* block, size_t from, size_t size) {
  if (g_fill >= 0 && block != nullptr) [[unlikely]]
    fill(block, from, size);
  return block;
}

// Upper bound on the initialised bytes of a block (nullptr: none); unspecified without MTRACE_FILL.
// The usable size where it is known, because a program may use all of it; otherwise `requested`, or
// SIZE_MAX if that is 0.
size_t content_of(void* block, size_t requested);
inline size_t content_size(void* block, size_t requested) {
  if (g_fill >= 0 && block != nullptr) [[unlikely]]
    return content_of(block, requested);
  return 0;
}

}  // namespace mtrace::hook
