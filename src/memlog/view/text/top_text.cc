#include "view/text/top_text.h"

#include "model/ledger/ledger_file.h"
#include "model/ledger/ledger_state.h"
#include "util/text.h"

namespace mtrace::text {
namespace {

int64_t rounded(double bytes) { return std::llround(bytes); }

}  // namespace

std::string top_bytes(int64_t bytes, bool sign, const Style& style) {
  if (!style.units) return sign ? fmt::format("{:+}", bytes) : fmt::format("{}", bytes);
  std::string text = bytes_text(bytes, style, sign);
  constexpr std::string_view kBytes = " bytes";
  if (text.ends_with(kBytes)) text.resize(text.size() - kBytes.size());
  return text;
}

std::string top_count(double each, const Style& style) {
  const auto whole = static_cast<int64_t>(std::llround(each));
  return style.units ? util::grouped(whole) : fmt::format("{}", whole);
}

std::vector<std::string> top_head(const ledger::LedgerFile& file, const ledger::Watch& watch,
                                  const TopView& view, const Style& style) {
  const format::LedgerHeader& header = file.header();
  const ledger::WatchRow total = watch.total();
  std::string first = fmt::format(
      "{} ({})  {}{} {}  {}/s  {} allocs/s", plain(util::array_text(header.name)), header.pid,
      watch.kind().empty() ? "" : '@' + plain(watch.kind()) + ' ',
      watch.marked() ? "since mark" : "live", top_bytes(total.live, watch.marked(), style),
      top_bytes(rounded(total.growth), true, style), top_count(total.allocations, style));
  if (watch.kind().empty()) {
    const uint64_t peak = std::max(watch.state().peak, total.peak);
    first += "  peak " + top_bytes(static_cast<int64_t>(peak), false, style);
  }
  if (header.sampled != 0) first += "  sampled";
  if (header.recording == 0) first += "  recording stopped";
  if (header.missing != 0) first += "  ledger incomplete";
  std::vector<std::string> lines = {first};
  if (!view.heap.empty()) lines.push_back(view.heap);
  if (std::string gap = ledger::python_gap(file, watch.state()); !gap.empty()) {
    lines.push_back(std::move(gap));
  }
  std::string besides;
  for (const auto& [kind, counts] : watch.kinds()) {
    if (kind == watch.kind()) continue;
    besides += fmt::format("{}@{} {} in {}", besides.empty() ? "besides: " : ", ", plain(kind),
                           top_bytes(counts.live_bytes(), false, style),
                           blocks_text(counts.live_blocks()));
  }
  if (!besides.empty()) lines.push_back(std::move(besides));
  if (!view.message.empty()) {
    lines.push_back(view.message);
  } else if (view.keys) {
    lines.push_back(top_keys());
  }
  return lines;
}

std::string top_keys() {
  return "l live g growth a allocs  p peak  enter open  s stacks  / filter  ? help q quit";
}

std::vector<std::string> top_help() {
  return {
      "Sort by",
      "  l  live bytes          g  growth per second",
      "  a  allocations         p  bytes at the peak of the process",
      "",
      "Functions and stacks",
      "  up, down, k, j   select a row",
      "  enter            show or hide a function's stacks, or a stack's frames",
      "  s                switch between functions and stacks",
      "  /                filter: show only stacks with a frame that matches",
      "  escape           remove the filter",
      "",
      "Numbers",
      "  m      set a mark: live and blocks are then the change since the mark",
      "  u      remove the mark",
      "  space  refresh now",
      "",
      "  q quits, any other key goes back",
  };
}

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

std::string StackFilter::set(const std::string& expression) {
  std::unique_ptr<re2::RE2> pattern;
  if (!expression.empty()) {
    re2::RE2::Options options;
    options.set_case_sensitive(false);
    options.set_log_errors(false);
    pattern = std::make_unique<re2::RE2>(expression, options);
    if (!pattern->ok()) return pattern->error();
  }
  expression_ = expression;
  pattern_ = std::move(pattern);
  return {};
}

void StackFilter::apply(std::vector<ledger::WatchRow>& rows, const StackNames& names) const {
  if (pattern_ == nullptr) return;
  std::erase_if(rows, [&](const ledger::WatchRow& row) {
    const std::vector<std::string> frames = names.all_frames(*row.stack);
    return std::none_of(frames.begin(), frames.end(), [&](const std::string& frame) {
      return re2::RE2::PartialMatch(frame, *pattern_);
    });
  });
}

}  // namespace mtrace::text
