// MTRACE_UNKNOWN=stacks: frees of blocks that were not seen, double frees, and allocations whose
// free was not seen, as entries of their own kinds.
//
// A table of 65,536 places has the stack that freed an address; a later free overwrites an earlier
// one. A block that was freed before may have been allocated again unseen, so it counts as freed
// twice only where libc's own data show that it is free (record/freed_chunk.h).
//
// Thread-safe; async-signal-safe.
#pragma once

#include "base/atomic.h"
#include "ledger/block.h"
#include "unwind/walker.h"

namespace mtrace::hook {

[[gnu::visibility("hidden")]] extern bool g_watching_frees;
inline bool watching_frees() { return load(g_watching_frees); }

// Starts watching; without memory for the table it does not. Call it while no other thread counts.
void watch_frees();
void stop_watching_frees();

// Records a free of `block` (not nullptr) by the program. `known`: the block was in the ledger.
void note_free(const void* block, bool known, const unwind::Registers& caller);
// Records that `block` was freed unseen: its address has been allocated again.
void note_missed_free(const ledger::Block& block);

}  // namespace mtrace::hook
