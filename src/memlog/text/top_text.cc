#include "text/top_text.h"

#include <fmt/format.h>

#include <cmath>

#include "live/ledger_file.h"
#include "profile/text.h"
#include "text/top_help.h"

namespace mtrace::text {
namespace {

// Without the word "bytes": a column has its title.
std::string number(int64_t bytes, bool sign, const Style& style) {
  if (!style.units) return sign ? fmt::format("{:+}", bytes) : fmt::format("{}", bytes);
  std::string text = bytes_text(bytes, style, sign);
  constexpr std::string_view kBytes = " bytes";
  if (text.ends_with(kBytes)) text.resize(text.size() - kBytes.size());
  return text;
}

std::string count(double each, const Style& style) {
  const auto whole = static_cast<int64_t>(std::llround(each));
  return style.units ? profile::grouped(whole) : fmt::format("{}", whole);
}

int64_t rounded(double bytes) { return std::llround(bytes); }

const char* title(live::WatchOrder order, live::WatchOrder column, const char* name,
                  const char* chosen) {
  return order == column ? chosen : name;
}

}  // namespace

std::vector<std::string> top_head(const live::LedgerFile& file, const live::Watch& watch,
                                  const TopView& view, const Style& style) {
  const format::LedgerHeader& header = file.header();
  const live::WatchRow total = watch.total();
  std::string first = fmt::format(
      "{} ({})  {} {}  {}/s  {} allocs/s  peak {}", plain(live::ledger_text(header.name)),
      header.pid, watch.marked() ? "since mark" : "live", number(total.live, watch.marked(), style),
      number(rounded(total.growth), true, style), count(total.allocations, style),
      number(static_cast<int64_t>(std::max(watch.state().peak, total.peak)), false, style));
  if (header.sampled != 0) first += "  sampled";
  if (header.recording == 0) first += "  recording stopped";
  if (header.missing != 0) first += "  ledger incomplete";
  std::vector<std::string> lines = {first};
  if (!view.message.empty()) {
    lines.push_back(view.message);
  } else if (view.keys) {
    lines.push_back(top_keys());
  }
  using enum live::WatchOrder;
  lines.push_back(fmt::format("{:>12} {:>10} {:>13} {:>12} {:>12}  {}",
                              title(view.order, kLive, "live", "LIVE"), "blocks",
                              title(view.order, kGrowth, "growth/s", "GROWTH/S"),
                              title(view.order, kAllocations, "allocs/s", "ALLOCS/S"),
                              title(view.order, kPeak, "peak", "PEAK"), "stack"));
  return lines;
}

std::string top_row(const live::WatchRow& row, const StackNames& names, const Style& style) {
  return fmt::format("{:>12} {:>10} {:>13} {:>12} {:>12}  {}", number(row.live, false, style),
                     row.blocks, number(rounded(row.growth), true, style),
                     count(row.allocations, style),
                     number(static_cast<int64_t>(row.peak), false, style), names.line(*row.stack));
}

}  // namespace mtrace::text
