// Memory for a part of a table: of the file behind the tables if there is one, else of the kernel.
// Never given back. Lock-free without a file; async-signal-safe.
#pragma once

#include <cstddef>

#include "base/atomic.h"
#include "base/syscall.h"
#include "base/table_file.h"
#include "base/table_growth.h"

namespace mtrace::sys {

namespace internal {

template <typename T, typename Grow, typename Map>
T* make_table_memory(T*& word, size_t bytes, bool is_sparse, Grow grow, Map map) {
  T* known = load_acquire(word);
  if (known != nullptr) return known;
  void* fresh = nullptr;
  if (g_table_header != nullptr) {
    TableTurn turn;
    known = load_acquire(word);
    if (known != nullptr) return known;
    fresh = grow(turn);
    if (fresh != nullptr && compare_exchange(word, known, static_cast<T*>(fresh))) {
      tables_grew(bytes, is_sparse);
      return static_cast<T*>(fresh);
    }
    if (fresh != nullptr) return known;  // another thread's, without a turn; ours stays unused
  }
  fresh = map();
  if (fresh == nullptr) return nullptr;
  if (compare_exchange(word, known, static_cast<T*>(fresh))) {
    tables_grew(bytes, is_sparse);
    return static_cast<T*>(fresh);
  }
  // Another thread was first: its memory serves, and ours is unmapped.
  unmap_memory(fresh, bytes);
  return known;
}

}  // namespace internal

// Makes `word` point to `bytes` of zeroed memory, unless it is set already. Returns the new value
// of `word`; nullptr: no memory.
template <typename T>
T* table_memory(T*& word, size_t bytes) {
  return internal::make_table_memory(
      word, bytes, false, [&](TableTurn& turn) { return turn.grow(bytes); },
      [&] { return map_memory(bytes); });
}
// table_memory() for one of many equal parts, in whole pages, of which few may ever be touched.
// `leads_on`: for one of few parts that will hold addresses of others.
template <typename T>
T* sparse_table_memory(T*& word, size_t bytes, bool leads_on = false) {
  return internal::make_table_memory(
      word, bytes, true,
      [&](TableTurn& turn) { return leads_on ? turn.grow(bytes) : turn.grow_part(bytes); },
      [&] { return map_sparse_memory(bytes); });
}

}  // namespace mtrace::sys
