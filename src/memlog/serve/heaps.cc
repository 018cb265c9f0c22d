#include "serve/heaps.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <tuple>

#include "analyze/expiry_groups.h"
#include "profile/text.h"
#include "target/ledgers.h"
#include "text/top_items.h"

namespace mtrace::serve {

Heap::Heap(std::unique_ptr<live::LedgerFile> ledger, std::string root,
           std::shared_ptr<symbolize::Symbolizer> symbolizer,
           analyze::ResponsiblePointer responsible)
    : ledger_(std::move(ledger)),
      root_(std::move(root)),
      symbolizer_(std::move(symbolizer)),
      names_(symbolizer_, std::move(responsible)) {}

void Heap::look() {
  watch_.look(*ledger_, target::real_time_now());
  total_ = {};
  for (const live::LedgerStackState& stack : state().stacks) {
    if (stack.kind == 0) total_ += stack.now;
  }
}

uint64_t Heap::peak_bytes() const { return std::max(state().peak, watch_.total().peak); }

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

Heaps::Heaps(symbolize::SearchPath where, analyze::ResponsiblePointer responsible)
    : where_(std::move(where)),
      symbolizer_(std::make_shared<symbolize::Symbolizer>(where_)),
      responsible_(std::move(responsible)) {}

std::shared_ptr<symbolize::Symbolizer> Heaps::symbolizer_for(const std::string& root) const {
  if (root.empty() || !where_.sysroot.empty()) return symbolizer_;
  symbolize::SearchPath below = where_;
  below.sysroot = root;
  return std::make_shared<symbolize::Symbolizer>(below);
}

Heap& Heaps::look(Opened opened) {
  const uint64_t number = opened.totals.number;
  auto found = known_.find(number);
  if (found == known_.end()) {
    found = known_
                .emplace(std::piecewise_construct, std::forward_as_tuple(number),
                         std::forward_as_tuple(std::move(opened.ledger), opened.totals.root,
                                               symbolizer_for(opened.totals.root), responsible_))
                .first;
  }
  found->second.look();
  return found->second;
}

void Heaps::keep_only(const std::vector<uint64_t>& numbers) {
  std::erase_if(known_, [&](const auto& one) {
    return std::find(numbers.begin(), numbers.end(), one.first) == numbers.end();
  });
}

}  // namespace mtrace::serve
