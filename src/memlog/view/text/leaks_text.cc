#include "view/text/leaks_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "util/text.h"
#include "view/json/views.h"
#include "view/text/answer.h"
#include "view/text/frame_text.h"
#include "view/text/report_text.h"

namespace mtrace::text {
namespace {

using analyze::Course;
using analyze::Finding;
using analyze::Row;
using analyze::Series;

// Where the growth is known exactly, its interval says nothing.
std::string interval_text(const json::Value& slope, const Style& style) {
  if (*slope.find("growth_low_bytes_per_report") == *slope.find("growth_high_bytes_per_report")) {
    return {};
  }
  return filled(
      " (95%: {growth_low_bytes_per_report:+size} to {growth_high_bytes_per_report:+size})", slope,
      style);
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

std::string leak_text(const Series& series, const Finding& finding, const json::Value& leak,
                      bool explain, const Style& style) {
  return coloured(filled("{growth_bytes_per_report:+size} a report", leak, style), kRed, style) +
         (explain ? interval_text(leak, style) : "") +
         filled("  {first_bytes:size} -> {last_bytes:size}  ", leak, style) +
         chance_text(finding.probability, explain) + filled("[  {stack_count:stack}]", leak) +
         coloured(filled("[  stack={stack}]", leak), kFaint, style) + '\n' +
         stack_text(series, series.table().rows()[finding.row], style);
}

std::string forecast_text(json::Value forecast, Style style) {
  if (forecast.find("reports") == nullptr) {
    return filled("{limit_bytes:size} are live already\n", forecast, style);
  }
  forecast["latest"] = filled("[after {reports_latest:,} at the latest]", forecast);
  if (forecast["latest"].is_empty()) forecast["latest"] = "never";
  const std::string what = filled("{limit_bytes:size}", forecast, style);
  style.units = true;
  forecast["milliseconds"] = forecast["seconds"].as_double() * 1000;
  return what + filled(
                    " are live after {reports:,} more reports (95%: after {reports_earliest:,} "
                    "at the earliest, {latest}), at this pace in {milliseconds:time}\n",
                    forecast, style);
}

}  // namespace

std::string leaks_text(const Series& series, const std::vector<Finding>& findings,
                       const LeaksContext& context, const Style& style) {
  const std::string row = analyze::group_word(context.group_by);
  json::Value facts;
  json::put_findings(facts, series, findings, context.level, context.limit, style.limit);
  const std::vector<json::Value>& stacks = facts.find("stacks")->elements();
  const size_t leaks = static_cast<size_t>(facts.find("stacks_growing")->as_signed());
  const size_t others = findings.size() - leaks;
  const auto hidden = [](size_t more) {
    return more == 0 ? "" : fmt::format("... {} more (-n 0)\n", util::grouped(uint64_t{more}));
  };
  const size_t shown = style.limit == 0 ? leaks : std::min(leaks, style.limit);
  std::string out;
  for (size_t i = 0; i < shown; ++i) {
    out += leak_text(series, findings[i], stacks[i], context.explain, style);
  }
  out += hidden(leaks - shown);
  if (leaks == 0) {
    out += fmt::format("no {} grows\n", row);
  } else {
    out += fmt::format("\n{} {}: ", count_text(leaks, row.c_str()), leaks == 1 ? "grows" : "grow") +
           filled("{growth_bytes_per_report:+size} a report in all", facts, style) +
           (context.explain ? interval_text(facts, style) : "") + '\n';
    const auto is_several = [](const json::Value& stack) {
      const json::Value* const count = stack.find("stack_count");
      return count != nullptr && count->as_signed() > 1;
    };
    if (context.group_by == analyze::GroupBy::kFunction &&
        std::any_of(stacks.begin(), stacks.begin() + static_cast<ptrdiff_t>(shown), is_several)) {
      out += "--group-by line tells the lines of a function apart, --group-by stack its callers\n";
    }
    if (context.limit) out += forecast_text(*facts.find("forecast"), style);
  }
  if (context.explain) {
    out +=
        fmt::format("{} changed and {} tested; by chance, {:.2g} would be taken for growing\n",
                    count_text(findings.size(), row.c_str()), findings.size() == 1 ? "was" : "were",
                    facts.find("stacks_growing_by_chance")->as_double());
  }
  if (others == 0) return out + left_out_text(context.filtered);
  json::Value rest = json::Value::array();
  for (size_t i = shown; i < stacks.size(); ++i) {
    const Row& one = series.table().rows()[findings[leaks + i - shown].row];
    json::Value stack = stacks[i];
    stack["what"] = one.group != nullptr ? group_text(*one.group, style)
                                         : stack_line(series.table(), one, style);
    rest.push_back(std::move(stack));
  }
  return out + '\n' + coloured("not growing:", kBold, style) + '\n' +
         table({{"", "{course}"},
                {"", "{first_bytes:size}"},
                {"", "-> {last_bytes:size}"},
                {"", "{what}"}},
               rest, style) +
         hidden(others - rest.size()) + left_out_text(context.filtered);
}

}  // namespace mtrace::text
