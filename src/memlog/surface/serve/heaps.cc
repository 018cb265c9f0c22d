#include "surface/serve/heaps.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <utility>

#include "process/inspect/clock.h"
#include "util/text.h"
#include "view/heap/expiry.h"
#include "view/text/top_items.h"

namespace mtrace::serve {
namespace {

constexpr size_t kKept = 4;  // heaps

}  // namespace

Heap::Heap(std::unique_ptr<ledger::LedgerFile> ledger,
           std::shared_ptr<symbols::Symbolizer> symbolizer, analyze::ResponsiblePointer responsible)
    : ledger_(std::move(ledger)),
      symbolizer_(std::move(symbolizer)),
      names_(symbolizer_, std::move(responsible)) {
  names_.fold_runtimes();
}

void Heap::look() { watch_.look(*ledger_, process::real_time_now()); }

std::vector<FunctionRow> Heap::functions() {
  const std::vector<ledger::WatchRow> rows = watch_.rows(ledger::WatchOrder::kLive);
  std::vector<const ledger::LedgerStackState*> stacks;
  stacks.reserve(rows.size());
  for (const ledger::WatchRow& row : rows) stacks.push_back(row.stack);
  names_.learn(*ledger_, state(), stacks);
  std::vector<FunctionRow> out;
  for (const text::TopItem& item : text::top_items(rows, names_, text::TopView())) {
    const analyze::Group& group = names_.group(names_.group_of(*item.sum.stack));
    out.push_back({.function = util::escaped(group.name, ""),
                   .source = util::escaped(group.source, ""),
                   .bytes = item.sum.live,
                   .blocks = item.sum.blocks,
                   .peak_bytes = item.sum.peak,
                   .allocations = item.sum.allocations,
                   .stacks = item.stacks});
  }
  return out;
}

std::vector<ExpiredRow> Heap::expired(const std::vector<const analyze::ExpiryStack*>& stacks) {
  absl::flat_hash_map<uint32_t, const ledger::LedgerStackState*> by_index;
  for (const ledger::LedgerStackState& stack : state().stacks) by_index[stack.index] = &stack;
  std::vector<const analyze::ExpiryStack*> there;
  std::vector<const ledger::LedgerStackState*> unnamed;
  for (const analyze::ExpiryStack* stack : stacks) {
    const auto found = by_index.find(stack->index);
    if (found == by_index.end()) continue;
    there.push_back(stack);
    unnamed.push_back(found->second);
  }
  names_.learn(*ledger_, state(), unnamed);
  const auto group_of = [&](uint32_t index) { return names_.group_of(*by_index.at(index)); };
  std::vector<ExpiredRow> out;
  for (const analyze::ExpiryGroup& one : analyze::ExpiryGroups::sums(there, group_of)) {
    const analyze::Group& group = names_.group(one.group);
    out.push_back({.function = util::escaped(group.name, ""),
                   .source = util::escaped(group.source, ""),
                   .sum = one.sum,
                   .stacks = one.stacks.size()});
  }
  return out;
}

Heap& Heaps::look(Opened opened) {
  const ProcessTotals& process = opened.totals;
  const auto symbolizer = symbolizers_.of(process);
  const auto found = std::find_if(known_.begin(), known_.end(),
                                  [&](const Known& one) { return one.number == process.number; });
  if (found != known_.end()) {
    known_.splice(known_.begin(), known_, found);
  } else {
    known_.push_front({process.number, Heap(std::move(opened.ledger), symbolizer, responsible_)});
    if (known_.size() > kKept) known_.pop_back();
  }
  known_.front().heap.look();
  return known_.front().heap;
}

}  // namespace mtrace::serve
