// Memory for tables, and the containers in it. Thread-safe; async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "base/syscall.h"
#include "base/table_file.h"

namespace mtrace::base {

struct TableGrowth {
  uint64_t bytes;  // of the tables
  uint64_t mark;   // 0: none
  void (*passed)();
};
inline constinit TableGrowth g_table_growth = {};

// Counts `bytes` more for the tables. Past the mark calls passed(), inside an operation on the
// tables.
inline void tables_grew(size_t bytes) {
  TableGrowth& growth = g_table_growth;
  const uint64_t now = fetch_add<uint64_t>(growth.bytes, bytes) + bytes;
  const uint64_t mark = load(growth.mark);
  if (mark != 0 && now > mark) growth.passed();
}

// Has `passed` called when the tables have more than `bytes`, and then at each growth until it sets
// another mark.
inline void watch_table_growth(uint64_t bytes, void (*passed)()) {
  g_table_growth.passed = passed;
  store_release(g_table_growth.mark, bytes);
}

// ---- Memory for a part of a table: of the file behind the tables if there is one, else of the
// kernel. Never given back. Lock-free without a file; async-signal-safe.

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

// Makes `word` point to `bytes` of zeroed memory for a table, and counts them, unless it is set
// already. Returns the new value of `word`; nullptr: no memory. `sparse`: for one of many equal
// parts, in whole pages, that holds no addresses of others; the caller counts the pages that it
// uses.
template <typename T>
T* table_memory(T*& word, size_t bytes, bool sparse = false) {
  T* known = load_acquire(word);
  if (known != nullptr) return known;
  const auto made = [&] { return sparse ? void() : tables_grew(bytes); };
  if (has_table_file()) {
    TableTurn turn;
    known = load_acquire(word);
    if (known != nullptr) return known;
    auto* const fresh = static_cast<T*>(sparse ? turn.grow_part(bytes) : turn.grow(bytes));
    if (fresh != nullptr && compare_exchange(word, known, fresh)) return made(), fresh;
    if (fresh != nullptr) return known;  // another thread's, without a turn; ours stays unused
  }
  return private_memory(word, bytes, sparse ? map_sparse_memory : map_memory, made);
}

}  // namespace mtrace::base

namespace mtrace {

// ---- An array that grows in chunks of kChunk elements and never moves. Elements start zeroed;
// memory is taken when a chunk is first written. Lock-free; async-signal-safe.

template <typename T, uint32_t kPerChunk = 1u << 16, uint32_t kMost = 1u << 25>
class GrowingArray {
 public:
  static constexpr uint32_t kChunk = kPerChunk;
  static constexpr uint32_t kMaxChunks = kMost / kChunk;

  // nullptr: out of range, or the kernel gives no more memory.
  T* find_or_create(uint32_t index) {
    const uint32_t chunk = index / kChunk;
    if (chunk >= kMaxChunks) return nullptr;
    T* elements = base::table_memory(chunks_[chunk], kChunk * sizeof(T));
    return elements == nullptr ? nullptr : elements + index % kChunk;
  }

  // An array of the chunks' addresses, kMaxChunks of them.
  const void* chunks() const { return chunks_; }

  // nullptr: never created, which reads as zero.
  T* find(uint32_t index) const {
    const uint32_t chunk = index / kChunk;
    T* elements = chunk < kMaxChunks ? load_acquire(chunks_[chunk]) : nullptr;
    return elements == nullptr ? nullptr : elements + index % kChunk;
  }

 private:
  T* chunks_[kMaxChunks] = {};
};

// ---- Memory that only grows: table memory in chunks of 1 MiB, never moved and never given back,
// addressed by a 32-bit index so that the content can be mapped at other addresses. Lock-free;
// async-signal-safe.

class Arena {
 public:
  static constexpr uint32_t kUnit = 64;  // bytes per index step; allocations are aligned to it
  static constexpr uint32_t kChunkUnits = 1u << 14;
  static constexpr uint32_t kMaxChunks = 4096;  // 4 GiB in all

  // Index of zeroed memory of `bytes` (at most a chunk), or 0 when the kernel gives no more.
  uint32_t allocate(size_t bytes) {
    const auto units = static_cast<uint32_t>((bytes + kUnit - 1) / kUnit);
    uint32_t old = load(next_);
    for (;;) {
      uint32_t start = old == 0 ? 1 : old;  // index 0 means none
      if (start % kChunkUnits + units > kChunkUnits)
        start = (start / kChunkUnits + 1) * kChunkUnits;
      if (!ensure_chunk(start / kChunkUnits)) return 0;
      if (compare_exchange(next_, old, start + units)) return start;
    }
  }

  // All indices so far are below.
  uint32_t limit() const { return load(next_); }

  // An array of the chunks' addresses, kMaxChunks of them.
  const void* chunks() const { return chunks_; }

  void* at(uint32_t index) const {
    return load(chunks_[index / kChunkUnits]) + size_t{index % kChunkUnits} * kUnit;
  }

 private:
  bool ensure_chunk(uint32_t chunk) {
    return chunk < kMaxChunks &&
           base::table_memory(chunks_[chunk], size_t{kChunkUnits} * kUnit) != nullptr;
  }

  uint32_t next_ = 0;
  char* chunks_[kMaxChunks] = {};
};

// ---- Bits that any thread sets and none clears. Lock-free; async-signal-safe.

template <size_t kBits>
class BitSet {
 public:
  void set(size_t at) {
    const uint64_t bit = uint64_t{1} << at % 64;
    uint64_t& word = words_[at / 64];
    for (uint64_t seen = load(word); (seen & bit) == 0;) {
      if (compare_exchange(word, seen, seen | bit)) return;
    }
  }
  bool has(size_t at) const { return (load(words_[at / 64]) >> at % 64 & 1) != 0; }

  // Calls visit(at) for each bit that is set when the call begins, and perhaps for some set later.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (size_t i = 0; i < sizeof words_ / sizeof *words_; ++i) {
      for (uint64_t left = load_acquire(words_[i]); left != 0; left &= left - 1) {
        visit(i * 64 + static_cast<size_t>(__builtin_ctzll(left)));
      }
    }
  }

 private:
  uint64_t words_[(kBits + 63) / 64] = {};
};

}  // namespace mtrace
