// Blocks for which the block table had no place, as the hooks see them (ledger/unplaced.h).
// Thread-safe, async-signal-safe.
#pragma once

#include "ledger/sampling.h"

namespace mtrace::hook {

// What such a block stands for: that must be known again when it is freed, so it goes by the usable
// size.
ledger::Weight unplaced_weight(void* block);

// A block that is in no table is about to be freed. Its weight; of no blocks: it was allocated
// unseen.
ledger::Weight take_unplaced(void* block);

}  // namespace mtrace::hook
