// Adds up a ledger's state: changes since the last report, what the stacks hold, the peak.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <string>
#include <vector>

#include "live/ledger_state.h"

namespace mtrace::live {

// Facts about the live blocks of a stack.
struct LedgerHeld {
  uint64_t oldest = UINT64_MAX;  // birth of the oldest block, ticks
  uint64_t error = 0;            // bytes: standard error of what the stack holds, when sampling
};

struct LedgerRow {
  const LedgerStackState* stack;
  LedgerCounts change = {};  // since the last report
  uint64_t share;            // bytes at the peak
};

struct LedgerSummary {
  std::vector<LedgerRow> rows;  // stacks that allocated, freed, hold memory or share in the peak
  LedgerCounts total = {};      // of the heap; so is `change`
  LedgerCounts change = {};
  uint64_t slack = 0;  // bytes, of the heap
  LedgerCounts kinds[format::kLedgerKinds] = {};
  uint64_t peak = 0;                               // bytes
  uint64_t peak_when = 0;                          // nanoseconds since 1970
  uint64_t peak_error = 0;                         // bytes
  absl::flat_hash_map<uint32_t, LedgerHeld> held;  // by stack index
  uint64_t live_error = 0;                         // bytes
  bool based = true;  // false: the process was killed while publishing a report; changes are since
                      // the start
  bool whole = true;  // false: not all live blocks could be read
};

// Adds up the state at `now`, in nanoseconds since 1970. `state` must outlive the result and not
// move.
LedgerSummary sum_up(const LedgerFile& file, const LedgerState& state, uint64_t now);

// Returns the name of kind 1 or higher; empty: it has none.
std::string ledger_kind(const format::LedgerHeader& header, uint8_t kind);

}  // namespace mtrace::live
