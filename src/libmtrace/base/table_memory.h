// Memory for a part of a table: of the file behind the tables if there is one, else of the kernel.
// Never given back. Lock-free without a file; async-signal-safe.
#pragma once

#include <cstddef>

#include "base/atomic.h"
#include "base/syscall.h"
#include "base/table_file.h"
#include "base/table_growth.h"

namespace mtrace::sys {

// Makes `word` point to `bytes` of zeroed memory of this process alone, from map(bytes), unless it
// is set already. Returns the new value of `word`; nullptr: no memory. made(): it was this call.
template <typename T, typename Map, typename Made>
T* private_memory(T*& word, size_t bytes, Map map, Made made) {
  T* known = load_acquire(word);
  if (known != nullptr) return known;
  auto* const fresh = static_cast<T*>(map(bytes));
  if (fresh == nullptr) return nullptr;
  if (compare_exchange(word, known, fresh)) return made(), fresh;
  // Another thread was first: its memory serves, and ours is unmapped.
  unmap_memory(fresh, bytes);
  return known;
}

// private_memory() for a part of a table: of the file if there is one, from grow(turn).
template <typename T, typename Grow, typename Map, typename Made>
T* make_table_memory(T*& word, size_t bytes, Grow grow, Map map, Made made) {
  T* known = load_acquire(word);
  if (known != nullptr) return known;
  if (g_table_header != nullptr) {
    TableTurn turn;
    known = load_acquire(word);
    if (known != nullptr) return known;
    auto* const fresh = static_cast<T*>(grow(turn));
    if (fresh != nullptr && compare_exchange(word, known, fresh)) return made(), fresh;
    if (fresh != nullptr) return known;  // another thread's, without a turn; ours stays unused
  }
  return private_memory(word, bytes, map, made);
}

// Makes `word` point to `bytes` of zeroed memory for a table, and counts them, unless it is set
// already. Returns the new value of `word`; nullptr: no memory.
template <typename T>
T* table_memory(T*& word, size_t bytes) {
  return make_table_memory(
      word, bytes, [&](TableTurn& turn) { return turn.grow(bytes); }, map_memory,
      [&] { tables_grew(bytes); });
}
// table_memory() for one of many equal parts, in whole pages, that holds no addresses of others.
// The caller counts the pages that it uses.
template <typename T>
T* sparse_table_memory(T*& word, size_t bytes) {
  return make_table_memory(
      word, bytes, [&](TableTurn& turn) { return turn.grow_part(bytes); }, map_sparse_memory,
      [] {});
}

}  // namespace mtrace::sys
