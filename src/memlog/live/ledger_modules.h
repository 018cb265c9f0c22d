// Which module of a ledger an address belongs to.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "live/ledger_state.h"

namespace mtrace::live {

class LedgerModules {
 public:
  // The modules have to stay where they are.
  explicit LedgerModules(const std::vector<LedgerModuleState>& modules);

  static constexpr size_t kNone = SIZE_MAX;
  // Number in the list, as of a stack that was retired then (kLedgerAlive: it is in use), or kNone.
  size_t find(uint64_t address, uint32_t retired);
  // format::StackId of a stack.
  uint64_t stack_id(const LedgerStackState& stack);

 private:
  const std::vector<LedgerModuleState>& modules_;
  std::vector<uint64_t> identities_;
  absl::flat_hash_map<std::pair<uint64_t, uint32_t>, size_t> known_;
};

}  // namespace mtrace::live
