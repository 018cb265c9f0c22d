// Sums of blocks that a log only counts.
#pragma once

#include <algorithm>
#include <cstdint>

#include "model/events/event_log.h"

namespace mtrace::events {

// The free of a block. `short_lived`: the longest life that counts as short; it and `lifetime` in
// nanoseconds. `temporary`: by its thread, which had allocated nothing since.
inline LeftOut ended_block(uint32_t stack, uint64_t bytes, uint64_t lifetime, uint64_t short_lived,
                           bool temporary) {
  LeftOut one;
  one.stack = stack;
  one.frees = 1;
  one.freed = bytes;
  one.short_lived = lifetime <= short_lived ? 1 : 0;
  one.temporary = temporary ? 1 : 0;
  one.lifetime = one.shortest = one.longest = lifetime;
  return one;
}

inline void add_left_out(LeftOut& sum, const LeftOut& more) {
  sum.stack = more.stack;
  sum.allocations += more.allocations;
  sum.allocated += more.allocated;
  sum.frees += more.frees;
  sum.freed += more.freed;
  sum.short_lived += more.short_lived;
  sum.temporary += more.temporary;
  sum.lifetime += more.lifetime;
  sum.shortest = std::min(sum.shortest, more.shortest);
  sum.longest = std::max(sum.longest, more.longest);
}

}  // namespace mtrace::events
