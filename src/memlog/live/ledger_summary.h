// A ledger's state added up: what the stacks did since the last report, what they hold, the peak.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <string>
#include <vector>

#include "live/ledger_state.h"

namespace mtrace::live {

// Of the live blocks of a stack.
struct LedgerHeld {
  uint64_t oldest = UINT64_MAX;  // ticks
  uint64_t error = 0;            // bytes: the standard error of what it holds, in a sampled process
};

struct LedgerRow {
  const LedgerStackState* stack;
  LedgerCounts change = {};  // since the last report
  uint64_t share;            // bytes in the peak
};

struct LedgerSummary {
  std::vector<LedgerRow> rows;  // what changed or holds something or has a share in the peak
  LedgerCounts total = {};      // of the heap
  LedgerCounts change = {};
  LedgerCounts kinds[format::kLedgerKinds] = {};
  uint64_t peak = 0;                               // bytes
  uint64_t peak_when = 0;                          // nanoseconds since 1970
  uint64_t peak_error = 0;                         // bytes
  absl::flat_hash_map<uint32_t, LedgerHeld> held;  // by index of the stack
  uint64_t live_error = 0;                         // bytes
  bool based = true;  // false: killed at publishing a report; changes are since the start
  bool whole = true;  // false: live blocks could not all be read
};

// At `now`, nanoseconds since 1970. The state has to stay where it is.
LedgerSummary sum_up(const LedgerFile& file, const LedgerState& state, uint64_t now);

// Of kind 1 and up; empty: it has none.
std::string ledger_kind(const format::LedgerHeader& header, uint8_t kind);

}  // namespace mtrace::live
