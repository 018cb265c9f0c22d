// MTRACE_UNKNOWN=stacks: who frees what was not seen, or frees it twice, and whose blocks were
// freed unseen, as entries of their own kinds.
//
// Who freed an address is remembered in a table of 65,536 places, by address: a later free takes
// the place of an earlier one. A block that was freed before may have been allocated again unseen,
// so it counts as freed twice only where libc itself says that it is free (record/freed_chunk.h).
//
// Thread-safe; async-signal-safe.
#pragma once

#include "base/atomic.h"
#include "ledger/block.h"
#include "unwind/walker.h"

namespace mtrace::hook {

[[gnu::visibility("hidden")]] extern bool g_watching_frees;
inline bool watching_frees() { return load(g_watching_frees); }

// From now on. Without memory for the table nothing is watched. While no other thread counts.
void watch_frees();
void stop_watching_frees();

// The program frees `block` (not nullptr), which was in the ledger or was not.
void note_free(const void* block, bool known, const unwind::Registers& caller);
// A block was freed unseen: its address has come back.
void note_missed_free(const ledger::Block& block);

}  // namespace mtrace::hook
