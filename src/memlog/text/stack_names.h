// Names for stacks of a ledger, looked up when a stack is first shown and kept.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <string>
#include <vector>

#include "live/ledger_state.h"
#include "symbolize/symbolizer.h"

namespace mtrace::text {

class StackNames {
 public:
  explicit StackNames(symbolize::SearchPath where) : resolver_(std::move(where)) {}

  // Learns the names of these stacks of one process, those that are known already left out.
  void learn(const live::LedgerFile& file, const live::LedgerState& state,
             const std::vector<const live::LedgerStackState*>& stacks);

  // A line a frame, innermost first, as a terminal can show them; empty before learn().
  const std::vector<std::string>& frames(const live::LedgerStackState& stack) const;
  // The functions in one line: "f < g < h".
  std::string line(const live::LedgerStackState& stack) const;
  // 16 hex digits that mean the same stack everywhere.
  std::string id(const live::LedgerStackState& stack) const;

 private:
  struct Named {
    std::vector<std::string> frames;
    std::string line;
    uint64_t id = 0;
  };

  symbolize::Symbolizer resolver_;
  absl::flat_hash_map<uint32_t, Named> known_;  // by ordinal
};

}  // namespace mtrace::text
