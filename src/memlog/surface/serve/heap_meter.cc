#include "surface/serve/heap_meter.h"

#include <algorithm>
#include <unordered_set>

#include "util/text.h"
#include "view/text/stack_names.h"

namespace mtrace::serve {
namespace {

constexpr char kOther[] = "other";

bool holds(const ledger::LedgerStackState& stack) {
  return stack.kind == 0 && stack.now.live_bytes() != 0;
}

}  // namespace

HeapFigures HeapMeter::measure(const ProcessTotals& process, const ledger::LedgerFile& ledger,
                               size_t top) {
  const ledger::LedgerState state = ledger::read_ledger(ledger);
  HeapFigures figures = {.peak_bytes = state.peak,
                         .lost_stacks = state.lost_stacks,
                         .lost_frames = state.lost_frames,
                         .lost_blocks = state.lost_blocks,
                         .lost_inflight = state.lost_inflight,
                         .lost_frees = state.lost_frees,
                         .unread = state.unread};
  uint64_t shares = 0;
  for (const ledger::LedgerStackState& stack : state.stacks) {
    if (stack.kind != 0) continue;
    figures.total += stack.now;
    shares += stack.share;
  }
  figures.peak_bytes = std::max(figures.peak_bytes, shares);
  Known& known = known_[process.number];
  learn(known, process, ledger, state);
  put_functions(known, state, top, figures);
  return figures;
}

void HeapMeter::learn(Known& known, const ProcessTotals& process, const ledger::LedgerFile& ledger,
                      const ledger::LedgerState& state) {
  if (!state.stacks.empty()) {
    known.functions.resize(
        std::max<size_t>(known.functions.size(), size_t{state.stacks.back().ordinal} + 1));
  }
  std::vector<const ledger::LedgerStackState*> fresh;
  for (const ledger::LedgerStackState& stack : state.stacks) {
    if (holds(stack) && known.functions[stack.ordinal] == 0) fresh.push_back(&stack);
  }
  if (fresh.empty()) return;
  text::StackNames names(symbolizers_.of(process), responsible_);
  names.learn(ledger, state, fresh);
  for (const ledger::LedgerStackState* stack : fresh) {
    known.functions[stack->ordinal] =
        number_of(util::escaped(names.group(names.group_of(*stack)).name, ""));
  }
}

void HeapMeter::put_functions(const Known& known, const ledger::LedgerState& state, size_t top,
                              HeapFigures& figures) const {
  absl::flat_hash_map<uint32_t, int64_t> held;
  for (const ledger::LedgerStackState& stack : state.stacks) {
    if (holds(stack)) held[known.functions[stack.ordinal]] += stack.now.live_bytes();
  }
  std::vector<std::pair<int64_t, uint32_t>> most;
  for (const auto& [number, bytes] : held) most.emplace_back(bytes, number);
  std::sort(most.rbegin(), most.rend());
  figures.functions[kOther] = 0;
  for (size_t i = 0; i < most.size(); ++i) {
    const auto& [bytes, number] = most[i];
    figures.functions[i < top ? names_[number - 1] : kOther] += bytes;
  }
}

uint32_t HeapMeter::number_of(const std::string& function) {
  const auto [at, fresh] = numbers_.try_emplace(function, static_cast<uint32_t>(names_.size() + 1));
  if (fresh) names_.push_back(function);
  return at->second;
}

void HeapMeter::keep_only(const std::vector<uint64_t>& numbers) {
  const std::unordered_set<uint64_t> kept(numbers.begin(), numbers.end());
  std::erase_if(known_, [&](const auto& one) { return !kept.contains(one.first); });
}

}  // namespace mtrace::serve
