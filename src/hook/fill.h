// MTRACE_FILL: memory that has no content yet is filled, so that a program that reads it does the
// same each time.
#pragma once

#include <cstddef>
#include <cstring>

namespace mtrace::hook {

inline int g_fill = -1;  // the byte; -1: none

// Fills bytes `from` to `size` of a block (nullptr: the allocation failed) and returns it.
inline void* filled(void* block, size_t from, size_t size) {
  if (__builtin_expect(g_fill >= 0, 0) && block != nullptr && from < size) {
    memset(static_cast<char*>(block) + from, g_fill, size - from);
  }
  return block;
}

}  // namespace mtrace::hook
