// Finds the module of an address in a ledger.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "live/ledger_state.h"

namespace mtrace::live {

class LedgerModules {
 public:
  // `state` must outlive this and not change.
  explicit LedgerModules(const LedgerState& state);

  static constexpr size_t kNone = SIZE_MAX;
  // Returns the module's position in the list, or kNone. `retired`: the unload epoch at which the
  // stack was retired; kLedgerAlive: it is in use.
  size_t find(uint64_t address, uint32_t retired);
  // Returns the format::StackId of a stack.
  uint64_t stack_id(const LedgerStackState& stack);

 private:
  const LedgerState& state_;
  const std::vector<LedgerModuleState>& modules_;
  std::vector<uint64_t> identities_;
  absl::flat_hash_map<std::pair<uint64_t, uint32_t>, size_t> known_;
};

}  // namespace mtrace::live
