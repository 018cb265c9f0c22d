// The counters of a stack: totals that only grow, so that a report is a difference. Each of the
// first threads of a stack adds to a set of its own, without the bus lock; all later threads share
// one set. A reader adds the sets up.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "format/ledger.h"
#include "ledger/block.h"

namespace mtrace::ledger {

using Counters = format::LedgerCounters;

inline uint64_t live_bytes(const Counters& c) { return c.allocated_bytes - c.freed_bytes; }
inline uint64_t live_blocks(const Counters& c) { return c.allocated_blocks - c.freed_blocks; }

using CounterSet = format::LedgerCounterSet;

// The owner of a set in its mark: the slot of the thread that alone adds to the set; 0: none.
inline constexpr unsigned kOwnerShift = format::kLedgerMarkBits;
inline constexpr uint64_t kHeightBits = (uint64_t{1} << kOwnerShift) - 1;
inline constexpr uint64_t owned_by(uint32_t number) { return uint64_t{number} << kOwnerShift; }
inline uint32_t owner_of(const CounterSet& set) { return load(set.mark) >> kOwnerShift & 0x7fff; }
// Zeroes the set and keeps its owner. No other thread may be inside the library.
inline void clear(CounterSet& set) {
  const uint64_t owner = set.mark & ~kHeightBits;
  set = {};
  set.mark = owner;
}

// Shortest and longest lifetime, as in a CounterSet.
struct Extremes {
  uint32_t shortest;
  uint32_t longest;
};

// `owner`: the word is written by the calling thread alone.
inline void add(bool owner, uint64_t& word, uint64_t value) {
  if (owner) {
    add_own(word, value);
  } else {
    fetch_add(word, value);
  }
}

inline void subtract(bool owner, uint64_t& word, uint64_t value) {
  if (owner) {
    subtract_own(word, value);
  } else {
    fetch_add(word, -value);
  }
}

// Raises a word to `value`; other threads may raise the word at the same time.
inline void raise(uint32_t& word, uint32_t value) {
  uint32_t seen = load(word);
  while (seen < value && !compare_exchange(word, seen, value)) {
  }
}
inline void raise_extremes(CounterSet& set, Extremes extremes) {
  raise(set.shortest, extremes.shortest);
  raise(set.longest, extremes.longest);
}
inline constexpr uint32_t kShortestOfAll = kMostPackedTicks + 1;  // CounterSet::shortest of 0 ticks
inline Extremes extremes_of(uint64_t lifetime) {
  const uint32_t packed = pack_ticks(lifetime);
  return {kShortestOfAll - packed, packed + 1};
}

// What an allocation adds: one block, or in a sampled process what the block stands for.
struct Allocated {
  uint64_t bytes;
  uint64_t blocks;
  uint64_t slack;
};

// What the free of a block adds.
struct Freed {
  uint64_t bytes;
  uint64_t blocks;
  uint64_t slack;
  uint64_t lifetime;  // ticks, of each block
  bool temporary;
  bool short_lived;
};

// `owner`: the set is the calling thread's own.
[[gnu::always_inline]] inline void count_allocated(CounterSet& set, bool owner,
                                                   const Allocated& allocated) {
  add(owner, set.allocated_bytes, allocated.bytes);
  add(owner, set.allocated_blocks, allocated.blocks);
  if (owner || allocated.slack != 0) add(owner, set.slack, allocated.slack);
}

[[gnu::always_inline]] inline void count_freed(CounterSet& set, bool owner, const Freed& freed) {
  // First: a reader reads the freed blocks, then subtracts `long_lived`.
  if (!freed.short_lived) add(owner, set.long_lived, freed.blocks);
  add(owner, set.freed_bytes, freed.bytes);
  add(owner, set.freed_blocks, freed.blocks);
  if (owner || freed.slack != 0) subtract(owner, set.slack, freed.slack);
  if (freed.temporary) add(owner, set.temporary, freed.blocks);
  if (freed.lifetime != 0) {
    add(owner, set.lifetime, freed.lifetime * freed.blocks);
    raise_extremes(set, extremes_of(freed.lifetime));
  } else if (load(set.shortest) != kShortestOfAll) {  // else 0 ticks change no extreme
    raise_extremes(set, extremes_of(0));
  }
}

// Read all freed totals before the allocated ones: a block freed meanwhile then still counts as
// live, never as freed but not allocated.
inline void read_freed(const CounterSet& set, Counters& sum) {
  sum.temporary += load_acquire(set.temporary);
  sum.lifetime += load_acquire(set.lifetime);
  sum.freed_bytes += load_acquire(set.freed_bytes);
  const uint64_t freed = load_acquire(set.freed_blocks);
  sum.freed_blocks += freed;
  // While frees are being counted, `long_lived` may exceed `freed`.
  const uint64_t long_lived = load_acquire(set.long_lived);
  if (long_lived < freed) sum.short_lived += freed - long_lived;
}
inline void read_allocated(const CounterSet& set, Counters& sum) {
  sum.allocated_bytes += load_acquire(set.allocated_bytes);
  sum.allocated_blocks += load_acquire(set.allocated_blocks);
}

}  // namespace mtrace::ledger
