// Estimates the lifetimes of a stack's blocks that were freed between two looks at a ledger. Times
// are in ticks.
#pragma once

#include <cstdint>
#include <optional>

#include "model/ledger/ledger_state.h"

namespace mtrace::analyze {

// The lifetime of a freed block, or a bound: `least` is at or above it, `most` at or below it.
struct LiveTimeLimit {
  uint64_t ticks;
  bool exact;
};

struct LiveTime {
  uint64_t frees = 0;
  uint64_t mean = 0;                   // exact when there are frees
  std::optional<LiveTimeLimit> least;  // nothing: unknown
  std::optional<LiveTimeLimit> most;
};

// The ledger keeps the shortest and longest lifetime since the process's last report; each report
// resets them. So a value that both looks see may date from before the first look, and a report may
// remove one from after it. `before`: nullptr if the stack did not exist. `whole`: no report has
// reset them between the looks.
LiveTime live_time(const ledger::LedgerStackState* before, const ledger::LedgerStackState& after,
                   bool whole);

// Adds the freed blocks of another stack. A limit stays exact if the block that has it is known; it
// is unknown where that of either is.
void add(LiveTime& sum, const LiveTime& more);

}  // namespace mtrace::analyze
