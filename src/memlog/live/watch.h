// A ledger looked at again and again: what each stack holds, and how fast it grows.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <string>
#include <vector>

#include "live/ledger_state.h"

namespace mtrace::live {

struct WatchRow {
  const LedgerStackState* stack;  // of the last look
  int64_t live = 0;               // bytes; since the mark if there is one
  int64_t blocks = 0;
  double growth = 0;  // bytes a second since the look before; at the first look, since the start
  double allocations = 0;  // a second
  uint64_t peak = 0;       // bytes that the stack held at the process's peak
};

enum class WatchOrder { kLive, kGrowth, kAllocations, kPeak };

class Watch {
 public:
  // Reads the ledger. `now`: nanoseconds since 1970. Throws LedgerError.
  void look(LedgerFile& file, uint64_t now);

  // From now on rows are what has changed since; false: from the start again.
  void mark(bool on);
  bool marked() const { return marked_ != 0; }

  // The heap's stacks that hold or do something, in order, largest first.
  std::vector<WatchRow> rows(WatchOrder order) const;
  // Of all of them together.
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

}  // namespace mtrace::live
