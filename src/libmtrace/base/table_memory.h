// Memory for a part of a table: of the file behind the tables if there is one, else of the kernel.
// Never given back. Lock-free without a file; async-signal-safe.
#pragma once

#include <cstddef>

#include "base/atomic.h"
#include "base/syscall.h"
#include "base/table_file.h"

namespace mtrace::sys {

// Makes `word` point to `bytes` of zeroed memory, unless it points to some already. What it then
// points to; nullptr: no memory.
template <typename T>
T* table_memory(T*& word, size_t bytes) {
  T* known = load_acquire(word);
  if (known != nullptr) return known;
  void* fresh = nullptr;
  if (g_table_header != nullptr) {
    TableTurn turn;
    known = load_acquire(word);
    if (known != nullptr) return known;
    fresh = turn.grow(bytes);
    if (fresh != nullptr && compare_exchange(word, known, static_cast<T*>(fresh))) {
      return static_cast<T*>(fresh);
    }
    if (fresh != nullptr) return known;  // of one who has not waited; what is in the file stays
  }
  fresh = map_memory(bytes);
  if (fresh == nullptr) return nullptr;
  if (compare_exchange(word, known, static_cast<T*>(fresh))) return static_cast<T*>(fresh);
  // The loser finds the winner's in place and gives its own back.
  unmap_memory(fresh, bytes);
  return known;
}

}  // namespace mtrace::sys
