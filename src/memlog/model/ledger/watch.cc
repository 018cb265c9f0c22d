#include "model/ledger/watch.h"

#include "model/ledger/ledger_memlog.h"

namespace mtrace::ledger {
namespace {

constexpr double kNanoseconds = 1e9;

}  // namespace

double quantity(const WatchRow& row, WatchOrder order) {
  switch (order) {
    case WatchOrder::kLive:
      return static_cast<double>(row.live);
    case WatchOrder::kGrowth:
      return row.growth;
    case WatchOrder::kAllocations:
      return row.allocations;
    case WatchOrder::kPeak:
      return static_cast<double>(row.peak);
  }
  return 0;
}

void Watch::look(LedgerFile& file, uint64_t now) {
  const bool first = now_ == 0;
  before_.clear();
  for (const LedgerStackState& stack : state_.stacks) before_[stack.ordinal] = stack.now;
  file.refresh();
  state_ = read_ledger(file);
  number_ = kind_.empty() ? 0 : -1;
  kinds_.clear();
  for (const LedgerStackState& stack : state_.stacks) {
    const std::string name = stack.kind == 0 ? "" : ledger_kind(file.header(), stack.kind);
    if (name.empty()) continue;
    kinds_[name] += stack.now;
    if (name == kind_) number_ = stack.kind;
  }
  const uint64_t since = first ? file.header().started : now_;
  constexpr double kLeast = 0.001;
  seconds_ =
      now > since ? std::max(static_cast<double>(now - since) / kNanoseconds, kLeast) : kLeast;
  now_ = now;
}

void Watch::mark(bool on) {
  mark_.clear();
  marked_ = on ? now_ : 0;
  if (!on) return;
  for (const LedgerStackState& stack : state_.stacks) mark_[stack.ordinal] = stack.now;
}

WatchRow Watch::row(const LedgerStackState& stack) const {
  const auto of = [&](const Counts& counts) {
    const auto found = counts.find(stack.ordinal);
    return found == counts.end() ? LedgerCounts{} : found->second;
  };
  const LedgerCounts base = of(mark_);
  const LedgerCounts change = stack.now - of(before_);
  return {.stack = &stack,
          .live = stack.now.live_bytes() - base.live_bytes(),
          .blocks = stack.now.live_blocks() - base.live_blocks(),
          .growth = static_cast<double>(change.live_bytes()) / seconds_,
          .allocations = static_cast<double>(change.allocated_blocks) / seconds_,
          .peak = stack.share};
}

std::vector<WatchRow> Watch::rows(WatchOrder order) const {
  std::vector<WatchRow> rows;
  for (const LedgerStackState& stack : state_.stacks) {
    if (!watches(stack)) continue;
    const WatchRow one = row(stack);
    const bool idle = one.live == 0 && one.blocks == 0 && one.growth == 0 && one.allocations == 0;
    if (!idle) rows.push_back(one);
  }
  std::sort(rows.begin(), rows.end(), [&](const WatchRow& a, const WatchRow& b) {
    // Break ties by ordinal, so that rows keep their places between looks.
    return std::make_tuple(-quantity(a, order), a.stack->ordinal) <
           std::make_tuple(-quantity(b, order), b.stack->ordinal);
  });
  return rows;
}

WatchRow Watch::total() const {
  WatchRow sum = {};
  for (const LedgerStackState& stack : state_.stacks) {
    if (!watches(stack)) continue;
    const WatchRow one = row(stack);
    sum.live += one.live;
    sum.blocks += one.blocks;
    sum.growth += one.growth;
    sum.allocations += one.allocations;
    sum.peak += one.peak;
  }
  return sum;
}

}  // namespace mtrace::ledger
