#include "serve/heaps.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <utility>

#include "analyze/expiry.h"
#include "profile/text.h"
#include "target/clock.h"
#include "text/top_items.h"

namespace mtrace::serve {
namespace {

constexpr size_t kKept = 4;  // heaps

}  // namespace

Heap::Heap(std::unique_ptr<live::LedgerFile> ledger, std::string root,
           std::shared_ptr<symbolize::Symbolizer> symbolizer,
           analyze::ResponsiblePointer responsible)
    : ledger_(std::move(ledger)),
      root_(std::move(root)),
      symbolizer_(std::move(symbolizer)),
      names_(symbolizer_, std::move(responsible)) {}

void Heap::look() { watch_.look(*ledger_, target::real_time_now()); }

std::vector<FunctionRow> Heap::functions() {
  const std::vector<live::WatchRow> rows = watch_.rows(live::WatchOrder::kLive);
  std::vector<const live::LedgerStackState*> stacks;
  stacks.reserve(rows.size());
  for (const live::WatchRow& row : rows) stacks.push_back(row.stack);
  names_.learn(*ledger_, state(), stacks);
  std::vector<FunctionRow> out;
  for (const text::TopItem& item : text::top_items(rows, names_, text::TopView())) {
    const analyze::Group& group = names_.group(names_.group_of(*item.sum.stack));
    out.push_back({.function = profile::escaped(group.name, ""),
                   .source = profile::escaped(group.source, ""),
                   .bytes = item.sum.live,
                   .blocks = item.sum.blocks,
                   .peak_bytes = item.sum.peak,
                   .allocations = item.sum.allocations,
                   .stacks = item.stacks});
  }
  return out;
}

std::vector<ExpiredRow> Heap::expired(const std::vector<const analyze::ExpiryStack*>& stacks) {
  absl::flat_hash_map<uint32_t, const live::LedgerStackState*> by_index;
  for (const live::LedgerStackState& stack : state().stacks) by_index[stack.index] = &stack;
  std::vector<const analyze::ExpiryStack*> there;
  std::vector<const live::LedgerStackState*> unnamed;
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
    out.push_back({.function = profile::escaped(group.name, ""),
                   .source = profile::escaped(group.source, ""),
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
    known_.push_front(
        {process.number, Heap(std::move(opened.ledger), process.root, symbolizer, responsible_)});
    if (known_.size() > kKept) known_.pop_back();
  }
  known_.front().heap.look();
  return known_.front().heap;
}

}  // namespace mtrace::serve
