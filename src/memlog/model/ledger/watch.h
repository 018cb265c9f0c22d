// Reads a ledger repeatedly: what each stack holds, and how fast it grows.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model/ledger/ledger_state.h"

namespace mtrace::ledger {

struct WatchRow {
  const LedgerStackState* stack;  // from the last look(); valid until the next
  int64_t live = 0;               // bytes; since the mark if one is set
  int64_t blocks = 0;
  double growth = 0;  // bytes per second since the previous look; at the first, since the start
  double allocations = 0;  // per second
  uint64_t peak = 0;       // bytes that the stack held at the process's peak
};

enum class WatchOrder { kLive, kGrowth, kAllocations, kPeak };

// Returns the number that rows are sorted by.
double quantity(const WatchRow& row, WatchOrder order);

class Watch {
 public:
  // Reads the ledger. `now`: nanoseconds since 1970. Throws LedgerError.
  void look(LedgerFile& file, uint64_t now);

  // Sets a mark: rows then show the changes since. False: removes it; rows show the time since the
  // start.
  void mark(bool on);
  bool marked() const { return marked_ != 0; }

  // Returns the heap stacks that hold memory or are active, largest first in this order.
  std::vector<WatchRow> rows(WatchOrder order) const;
  // Returns the sum of all heap stacks.
  WatchRow total() const;
  const LedgerState& state() const { return state_; }

 private:
  using Counts = absl::flat_hash_map<uint32_t, LedgerCounts>;  // by ordinal
  WatchRow row(const LedgerStackState& stack) const;

  LedgerState state_;
  Counts before_;
  Counts mark_;
  uint64_t now_ = 0;
  uint64_t marked_ = 0;
  double seconds_ = 1;  // between the last two looks
};

}  // namespace mtrace::ledger
