#include "cli/suppressed_stacks.h"

#include <unordered_map>

namespace mtrace::cli {

void suppress_stacks(HeapScan& scan, const live::LedgerFile& file, const live::KnownLedger& known,
                     text::StackNames& names, const std::vector<analyze::StackPattern>& patterns) {
  if (patterns.empty()) return;
  std::unordered_map<uint32_t, const live::LedgerStackState*> lost;
  for (size_t i = 0; i < scan.blocks().size(); ++i) {
    if (scan.reach(i) == analyze::Reach::kReachable) continue;
    const uint32_t stack = scan.blocks()[i].stack;
    if (const auto* state = known.find(stack)) lost.emplace(stack, state);
  }
  std::vector<const live::LedgerStackState*> stacks;
  for (const auto& [index, state] : lost) stacks.push_back(state);
  names.learn(file, known.state(), stacks);
  std::unordered_map<uint32_t, bool> suppressed;
  for (const auto& [index, state] : lost) suppressed[index] = names.matches(*state, patterns);
  scan.suppress([&](uint32_t stack) {
    const auto found = suppressed.find(stack);
    return found != suppressed.end() && found->second;
  });
}

}  // namespace mtrace::cli
