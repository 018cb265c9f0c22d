// Blocks for which the block table had no place, as the hooks see them (ledger/unplaced.h).
// Thread-safe, async-signal-safe.
#pragma once

#include "ledger/sampling.h"

namespace mtrace::hook {

// Weight of a block without a place. By its usable size, because that is all that is known of the
// block when it is freed.
ledger::Weight unplaced_weight(void* block);

// Takes out a block that is in no table and is about to be freed. Returns its weight; of no blocks:
// the block was allocated unseen.
ledger::Weight take_unplaced(void* block);

}  // namespace mtrace::hook
