// The last state read from a ledger, with its stacks by the index that blocks use.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>

#include "live/ledger_state.h"

namespace mtrace::live {

class KnownLedger {
 public:
  explicit KnownLedger(const LedgerFile& file) { read(file); }

  // Reads the ledger again and invalidates all pointers from before. Throws LedgerError.
  void read(const LedgerFile& file) {
    state_ = read_ledger(file);
    by_index_.clear();
    for (size_t i = 0; i < state_.stacks.size(); ++i) by_index_[state_.stacks[i].index] = i;
  }
  const LedgerState& state() const { return state_; }
  // Returns the stack at `index`, or nullptr if the last read found none.
  const LedgerStackState* find(uint32_t index) const {
    const auto at = by_index_.find(index);
    return at == by_index_.end() ? nullptr : &state_.stacks[at->second];
  }

 private:
  LedgerState state_;
  absl::flat_hash_map<uint32_t, size_t> by_index_;
};

}  // namespace mtrace::live
