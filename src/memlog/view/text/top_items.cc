#include "view/text/top_items.h"

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "util/columns.h"
#include "util/text.h"

namespace mtrace::text {
namespace {

using ledger::WatchOrder;
using ledger::WatchRow;

constexpr size_t kNumbers = 50;  // columns, with the blanks between them
constexpr size_t kLeastName = 20;

size_t name_width(const Style& style) {
  return std::max(style.columns, kNumbers + kLeastName) - kNumbers;
}

// `name` in so many columns. A function that is too long loses its outer scopes first; a line that
// begins with a blank is of a stack, and loses its end.
std::string fitted(std::string name, size_t width) {
  using util::columns_of;
  const std::string whole = name;
  while (!name.starts_with(' ') && columns_of(name) > width - (name == whole ? 0 : 2)) {
    const size_t scope = name.find("::");
    if (scope == std::string::npos || name.find_first_of("<{(") < scope) break;
    name.erase(0, scope + 2);
  }
  if (name != whole) name = ".." + name;
  if (columns_of(name) > width) name = std::string(util::beginning_of(name, width - 2)) + "..";
  return name + std::string(width - std::min(width, columns_of(name)), ' ');
}

void add(WatchRow& sum, const WatchRow& more) {
  sum.live += more.live;
  sum.blocks += more.blocks;
  sum.growth += more.growth;
  sum.allocations += more.allocations;
  sum.peak += more.peak;
}

std::string name_of(const TopItem& item, const StackNames& names, const Style& style) {
  const ledger::LedgerStackState& stack = *item.sum.stack;
  if (item.group == 0) return names.line(stack);
  const std::string name = plain(names.group(item.group).name);
  if (style.columns != 0) {
    return item.stacks == 1 ? name : fmt::format("{} ({})", name, item.stacks);
  }
  const std::string source = plain(names.group(item.group).source);
  return name + (source.empty() ? "" : "  " + source);
}

}  // namespace

std::vector<TopItem> top_items(const std::vector<WatchRow>& rows, const StackNames& names,
                               const TopView& view) {
  std::vector<TopItem> items;
  if (!view.grouped) {
    for (const WatchRow& row : rows) items.push_back({.sum = row});
    return items;
  }
  absl::flat_hash_map<size_t, size_t> places;  // by group
  for (const WatchRow& row : rows) {
    const size_t group = names.group_of(*row.stack);
    const auto [place, added] = places.try_emplace(group, items.size());
    if (added) {
      items.push_back({.sum = row, .group = group});
      continue;
    }
    add(items[place->second].sum, row);
    ++items[place->second].stacks;
  }
  std::stable_sort(items.begin(), items.end(), [&](const TopItem& a, const TopItem& b) {
    return ledger::quantity(a.sum, view.order) > ledger::quantity(b.sum, view.order);
  });
  const auto open = std::find_if(items.begin(), items.end(), [&](const TopItem& item) {
    return item.group == view.open && item.stacks > 1;
  });
  if (open == items.end()) return items;
  std::vector<TopItem> inside;
  for (const WatchRow& row : rows) {
    if (names.group_of(*row.stack) == view.open) inside.push_back({.sum = row, .inside = true});
  }
  items.insert(open + 1, inside.begin(), inside.end());
  return items;
}

std::string top_line(const TopItem& item, const StackNames& names, const Style& style) {
  const WatchRow& row = item.sum;
  const std::string live = top_bytes(row.live, false, style);
  const std::string growth = top_bytes(std::llround(row.growth), true, style);
  const std::string allocations = top_count(row.allocations, style);
  const std::string peak = top_bytes(static_cast<int64_t>(row.peak), false, style);
  if (style.columns == 0) {
    return fmt::format("{:>12} {:>10} {:>13} {:>12} {:>12}  {}", live, row.blocks, growth,
                       allocations, peak, name_of(item, names, style));
  }
  const std::string name =
      item.inside ? "  " + names.detail(*row.stack) : name_of(item, names, style);
  return fmt::format("{} {:>10} {:>7} {:>11} {:>7} {:>10}", fitted(name, name_width(style)), live,
                     row.blocks, growth, allocations, peak);
}

std::string top_titles(const TopView& view, const Style& style) {
  using enum WatchOrder;
  const auto title = [&](WatchOrder column, const char* name, const char* chosen) {
    return view.order == column ? chosen : name;
  };
  const char* live = title(kLive, "live", "LIVE");
  const char* growth = title(kGrowth, "growth/s", "GROWTH/S");
  const char* peak = title(kPeak, "peak", "PEAK");
  const char* what = view.grouped ? "function" : "stack";
  if (style.columns == 0) {
    return fmt::format("{:>12} {:>10} {:>13} {:>12} {:>12}  {}", live, "blocks", growth,
                       title(kAllocations, "allocs/s", "ALLOCS/S"), peak, what);
  }
  return fmt::format("{:<{}} {:>10} {:>7} {:>11} {:>7} {:>10}",
                     view.grouped ? "function (stacks)" : what, name_width(style), live, "blocks",
                     growth, title(kAllocations, "alloc/s", "ALLOC/S"), peak);
}

}  // namespace mtrace::text
