// Reads a ledger repeatedly: what each stack holds, and how fast it grows.
#pragma once

#include "model/ledger/ledger_state.h"
#include "util/prelude.h"

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
  // `kind`: of the program's own resources (mtrace_record) to watch; empty: the heap.
  explicit Watch(std::string kind = "") : kind_(std::move(kind)) {}

  // Reads the ledger. `now`: nanoseconds since 1970. Throws LedgerError.
  void look(LedgerFile& file, uint64_t now);

  // Sets a mark: rows then show the changes since. False: removes it; rows show the time since the
  // start.
  void mark(bool on);
  bool marked() const { return marked_ != 0; }

  // Returns the stacks that hold memory or are active, largest first in this order.
  std::vector<WatchRow> rows(WatchOrder order) const;
  // Returns the sum of all stacks.
  WatchRow total() const;
  const std::string& kind() const { return kind_; }
  // What is live of each kind of resources that has a name.
  const std::map<std::string, LedgerCounts>& kinds() const { return kinds_; }
  const LedgerState& state() const { return state_; }

 private:
  bool watches(const LedgerStackState& stack) const { return stack.kind == number_; }
  using Counts = absl::flat_hash_map<uint32_t, LedgerCounts>;  // by ordinal
  WatchRow row(const LedgerStackState& stack) const;

  std::string kind_;
  int number_ = 0;  // of the kind; -1: the process has recorded none so far
  std::map<std::string, LedgerCounts> kinds_;
  LedgerState state_;
  Counts before_;
  Counts mark_;
  uint64_t now_ = 0;
  uint64_t marked_ = 0;
  double seconds_ = 1;  // between the last two looks
};

}  // namespace mtrace::ledger
