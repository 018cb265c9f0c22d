// What one stack has allocated and freed, ever: totals that only grow. Live is their difference.
// Two sets a stack: `own` for the thread that met the stack first, which adds without the bus
// lock, and `shared` for all others. A reader adds the two.
#pragma once

#include <cstdint>

#include "base/atomic.h"

namespace mtrace::ledger {

struct Counters {
  uint64_t allocated_bytes;
  uint64_t allocated_blocks;
  uint64_t freed_bytes;
  uint64_t freed_blocks;

  bool operator==(const Counters&) const = default;
  Counters& operator+=(const Counters& other) {
    allocated_bytes += other.allocated_bytes;
    allocated_blocks += other.allocated_blocks;
    freed_bytes += other.freed_bytes;
    freed_blocks += other.freed_blocks;
    return *this;
  }
  Counters operator-(const Counters& other) const {
    return {allocated_bytes - other.allocated_bytes, allocated_blocks - other.allocated_blocks,
            freed_bytes - other.freed_bytes, freed_blocks - other.freed_blocks};
  }
};

inline uint64_t live_bytes(const Counters& c) { return c.allocated_bytes - c.freed_bytes; }
inline uint64_t live_blocks(const Counters& c) { return c.allocated_blocks - c.freed_blocks; }

// One instruction, so that a signal handler on the same thread cannot come between load and
// store. Only the owning thread may use it.
inline void add_own(uint64_t& word, uint64_t value) {
  asm volatile("addq %1, %0" : "+m"(word) : "er"(value) : "cc");
}

inline void add(bool owner, uint64_t& own, uint64_t& shared, uint64_t value) {
  if (owner) {
    add_own(own, value);
  } else {
    fetch_add(shared, value);
  }
}

inline void count_allocated(Counters& own, Counters& shared, bool owner, uint64_t bytes) {
  add(owner, own.allocated_bytes, shared.allocated_bytes, bytes);
  add(owner, own.allocated_blocks, shared.allocated_blocks, 1);
}

inline void count_freed(Counters& own, Counters& shared, bool owner, uint64_t bytes) {
  add(owner, own.freed_bytes, shared.freed_bytes, bytes);
  add(owner, own.freed_blocks, shared.freed_blocks, 1);
}

// Sum of both sets. The freed totals are read first: a block freed meanwhile then counts as live
// still, never as freed but not allocated.
inline Counters read(const Counters& own, const Counters& shared) {
  Counters sum;
  sum.freed_bytes = load_acquire(own.freed_bytes) + load_acquire(shared.freed_bytes);
  sum.freed_blocks = load_acquire(own.freed_blocks) + load_acquire(shared.freed_blocks);
  sum.allocated_bytes = load_acquire(own.allocated_bytes) + load_acquire(shared.allocated_bytes);
  sum.allocated_blocks = load_acquire(own.allocated_blocks) + load_acquire(shared.allocated_blocks);
  return sum;
}

}  // namespace mtrace::ledger
