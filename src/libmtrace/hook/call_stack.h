// The call stack of an allocation, as a record in the stack table.
//
// Thread-safe; async-signal-safe.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "ledger/thread_slots.h"
#include "unwind/walk_memory.h"
#include "unwind/walker.h"

namespace mtrace::hook {

// The last walk of each thread, by slot, and the stack that it led to.
struct LastWalk {
  unwind::WalkMemory memory;
  uint64_t id_and_stack;  // in one word, which no signal handler can tear; 0: none
};
// Six megabytes: not static, because a program with a limit on its data (RLIMIT_DATA) would not be
// loaded. Of no use before make_walks().
[[gnu::visibility("hidden")]] extern LastWalk* g_last_walks;
[[gnu::visibility("hidden")]] extern unsigned g_depth;

// Walks from `caller` on. Slot 0: a thread without one.
uint32_t walk_to_stack(const unwind::Registers& caller, uint32_t slot);

// The same for a thread with a slot: where its last walk still holds, without a walk.
[[gnu::always_inline]] inline uint32_t find_stack(const unwind::Registers& caller, uint32_t slot) {
  LastWalk& last = g_last_walks[slot];
  const uint32_t id = last.memory.same_walk(caller, g_depth);
  const uint64_t known = load(last.id_and_stack);
  if (id != 0 && known >> 32 == id) return static_cast<uint32_t>(known);
  return walk_to_stack(caller, slot);
}

// False: no memory. By a thread that is alone, before the first allocation is counted.
bool make_walks();
// Return addresses kept of each stack, 1 to format::kMaxDepth. Before the first allocation.
void set_depth(unsigned depth);
// No last walk holds any more: the tables are new ones, or begin again. By a thread that is alone.
void forget_walks();

}  // namespace mtrace::hook
