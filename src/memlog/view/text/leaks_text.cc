#include "view/text/leaks_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "util/text.h"
#include "view/text/frame_text.h"
#include "view/text/report_text.h"

namespace mtrace::text {
namespace {

using analyze::Course;
using analyze::Finding;
using analyze::Row;
using analyze::Series;
using analyze::Slope;

std::string rate_text(double bytes, const Style& style) {
  return bytes_text(static_cast<int64_t>(std::llround(bytes)), style);
}

std::string interval_text(const Slope& slope, const Style& style) {
  if (slope.low == slope.high) return {};
  return fmt::format(" (95%: {} to {})", rate_text(slope.low, style), rate_text(slope.high, style));
}

// How likely a stack that only fluctuates looks like this.
std::string chance_text(double probability, bool explain) {
  constexpr double kLeast = 1e-6;
  const double one_in = std::floor(1 / std::max(probability, kLeast));
  const char* const sure = probability < 1e-3   ? "almost certainly growing"
                           : probability < 0.05 ? "very probably growing"
                                                : "probably growing";
  std::string out =
      fmt::format("{} ({}1 in {} by chance)", sure, probability < kLeast ? "less than " : "",
                  util::grouped(static_cast<uint64_t>(one_in)));
  if (explain) out += probability < 1e-4 ? ", p < 0.0001" : fmt::format(", p {:.4f}", probability);
  return out;
}

std::string stack_text(const Series& series, const Row& row, const Style& style) {
  if (row.group != nullptr) return "    " + group_text(*row.group, style) + '\n';
  std::string out;
  for (const std::string& line : stack_lines(series.table(), row, style)) {
    out += "    " + line + '\n';
  }
  return out;
}

std::string leak_text(const Series& series, const Finding& finding, bool explain,
                      const Style& style) {
  const Row& row = series.table().rows()[finding.row];
  std::string out = coloured(rate_text(finding.slope.middle, style) + " a report", kRed, style);
  if (explain) out += interval_text(finding.slope, style);
  out += fmt::format("  {} -> {}  {}", bytes_text(finding.first, style, false),
                     bytes_text(finding.last, style, false),
                     chance_text(finding.probability, explain));
  if (row.group != nullptr) out += "  " + count_text(row.group->stacks, "stack");
  if (row.stack != 0) out += coloured(fmt::format("  stack={:016x}", row.stack), kFaint, style);
  return out + '\n' + stack_text(series, row, style);
}

std::string other_text(const Series& series, const Finding& finding, const Style& style) {
  const Row& row = series.table().rows()[finding.row];
  std::string out =
      fmt::format("{:<13} {:>14} -> {:<14}", analyze::course_name(finding.course),
                  bytes_text(finding.first, style, false), bytes_text(finding.last, style, false));
  out += ' ' + (row.group != nullptr ? group_text(*row.group, style)
                                     : stack_line(series.table(), row, style));
  return out + '\n';
}

std::string forecast_text(const Series& series, const Slope& growth, uint64_t limit,
                          const Style& style) {
  const auto bytes = static_cast<int64_t>(std::min<uint64_t>(limit, INT64_MAX));
  const std::string what = size_text(limit, style);
  if (series.states().back().live >= bytes) return fmt::format("{} are live already\n", what);
  const analyze::Forecast when = analyze::forecast(series, growth, bytes);
  const auto count = [](double states) {
    return util::grouped(static_cast<uint64_t>(std::llround(std::min(states, 1e15))));
  };
  Style units = style;
  units.units = true;
  const std::string latest =
      when.latest == 0 ? "never" : fmt::format("after {} at the latest", count(when.latest));
  return fmt::format(
      "{} are live after {} more reports (95%: after {} at the earliest, {}), at this pace in {}\n",
      what, count(when.states), count(when.earliest), latest,
      duration_text(static_cast<uint64_t>(std::min(when.seconds, 1e12) * 1000), units));
}

}  // namespace

std::string leaks_text(const Series& series, const std::vector<Finding>& findings,
                       const LeaksContext& context, const Style& style) {
  const char* row = analyze::group_word(context.group_by);
  std::string out;
  size_t leaks = 0;
  for (const Finding& finding : findings) {
    if (finding.course != Course::kGrows) break;
    ++leaks;
    if (style.limit == 0 || leaks <= style.limit)
      out += leak_text(series, finding, context.explain, style);
  }
  if (style.limit != 0 && leaks > style.limit) {
    out += fmt::format("... {} more (-n 0)\n", util::grouped(uint64_t{leaks - style.limit}));
  }
  if (leaks == 0) {
    out += fmt::format("no {} grows\n", row);
  } else {
    const Slope growth = analyze::growth_of(findings);
    out += fmt::format("\n{} {}: {} a report in all{}\n", count_text(leaks, row),
                       leaks == 1 ? "grows" : "grow", rate_text(growth.middle, style),
                       context.explain ? interval_text(growth, style) : "");
    const auto is_several = [&](const Finding& finding) {
      const Row& one = series.table().rows()[finding.row];
      return finding.course == Course::kGrows && one.group != nullptr && one.group->stacks > 1;
    };
    if (context.group_by == analyze::GroupBy::kFunction &&
        std::any_of(findings.begin(), findings.end(), is_several)) {
      out += "--group-by line tells the lines of a function apart, --group-by stack its callers\n";
    }
    if (context.limit) out += forecast_text(series, growth, *context.limit, style);
  }
  if (context.explain) {
    out += fmt::format("{} changed and {} tested; by chance, {:.2g} would be taken for growing\n",
                       count_text(findings.size(), row), findings.size() == 1 ? "was" : "were",
                       context.level * static_cast<double>(findings.size()));
  }
  const size_t others = findings.size() - leaks;
  if (others != 0) out += "\n" + coloured("not growing:", kBold, style) + '\n';
  for (size_t i = 0; i < others; ++i) {
    if (style.limit != 0 && i == style.limit) {
      out += fmt::format("... {} more (-n 0)\n", util::grouped(uint64_t{others - i}));
      break;
    }
    out += other_text(series, findings[leaks + i], style);
  }
  return out + left_out_text(context.filtered);
}

}  // namespace mtrace::text
