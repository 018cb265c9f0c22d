#include "view/text/top_text.h"

#include <fmt/format.h>

#include <cmath>

#include "model/ledger/ledger_file.h"
#include "model/ledger/ledger_notes.h"
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

}  // namespace mtrace::text
