// How long the freed blocks of a stack had lived, of those that were freed between two looks at a
// ledger. Times in ticks.
#pragma once

#include <cstdint>
#include <optional>

#include "live/ledger_state.h"

namespace mtrace::analyze {

// Of one of the freed, or as far as the ledger can tell: least at or above it, most at or below it.
struct LiveTimeLimit {
  uint64_t ticks;
  bool exact;
};

struct LiveTime {
  uint64_t frees = 0;
  uint64_t mean = 0;                   // exact where there are frees
  std::optional<LiveTimeLimit> least;  // none: nothing is known
  std::optional<LiveTimeLimit> most;
};

// The ledger keeps the least and the most since the process's last report; a report begins them
// anew. So what both looks have can be of before the first, and what a report took can be of
// after it. `before`: nullptr: it was not there. `whole`: no report has begun them anew meanwhile.
LiveTime live_time(const live::LedgerStackState* before, const live::LedgerStackState& after,
                   bool whole);

}  // namespace mtrace::analyze
