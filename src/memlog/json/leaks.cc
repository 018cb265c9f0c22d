#include "json/leaks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "json/stack.h"

namespace mtrace::json {
namespace {

using analyze::Course;
using analyze::Finding;
using analyze::Series;
using analyze::Slope;

int64_t rounded(double number) { return std::llround(std::clamp(number, -9e18, 9e18)); }

void put_slope(Value& out, const Slope& slope) {
  out["growth_bytes_per_report"] = rounded(slope.middle);
  out["growth_low_bytes_per_report"] = rounded(slope.low);
  out["growth_high_bytes_per_report"] = rounded(slope.high);
}

Value finding_stack(const Series& series, const Finding& finding) {
  const analyze::Row& row = series.table().rows()[finding.row];
  Value out = Value::object();
  if (row.stack != 0) out["stack"] = fmt::format("{:016x}", row.stack);
  out["kind"] = "heap";
  out["bytes"] = finding.last - finding.first;
  out["course"] = analyze::course_name(finding.course);
  out["first_bytes"] = finding.first;
  out["last_bytes"] = finding.last;
  out["states_bytes"] = series.values(finding.row);
  if (finding.course == Course::kGrows) {
    out["probability"] = finding.probability;
    put_slope(out, finding.slope);
  }
  put_frames(out, series.table(), row);
  return out;
}

Value forecast(const Series& series, const Slope& growth, uint64_t limit) {
  const auto bytes = static_cast<int64_t>(std::min<uint64_t>(limit, INT64_MAX));
  const bool reached = series.states().back().live >= bytes;
  Value out = {{"limit_bytes", limit}, {"reached", reached}};
  if (reached) return out;
  const analyze::Forecast when = analyze::forecast(series, growth, bytes);
  out["reports"] = rounded(when.states);
  out["reports_earliest"] = rounded(when.earliest);
  if (when.latest != 0) out["reports_latest"] = rounded(when.latest);
  out["seconds"] = rounded(when.seconds);
  return out;
}

}  // namespace

Value state_name(const analyze::State& state) {
  Value out = {{"seq", state.seq}};
  put_text(out, "label", plain(state.label));
  out["taken"] = state.taken;
  return out;
}

Value states(const Series& series) {
  Value out = Value::array();
  for (const analyze::State& state : series.states()) {
    Value one = state_name(state);
    one["live_bytes"] = state.live;
    out.push_back(std::move(one));
  }
  return out;
}

void put_findings(Value& out, const Series& series, const std::vector<Finding>& findings,
                  double level, std::optional<uint64_t> limit, size_t count) {
  const auto grows = [](const Finding& one) { return one.course == Course::kGrows; };
  const auto leaks = static_cast<size_t>(std::count_if(findings.begin(), findings.end(), grows));
  out["stacks_tested"] = findings.size();
  out["stacks_growing"] = leaks;
  out["stacks_growing_by_chance"] = level * static_cast<double>(findings.size());
  if (leaks != 0) {
    const Slope growth = analyze::growth_of(findings);
    put_slope(out, growth);
    if (limit) out["forecast"] = forecast(series, growth, *limit);
  }
  Value stacks = Value::array();
  for (size_t i = 0; i < findings.size(); ++i) {
    const size_t place = i < leaks ? i : i - leaks;
    if (count == 0 || place < count) stacks.push_back(finding_stack(series, findings[i]));
  }
  out["stacks"] = std::move(stacks);
}

}  // namespace mtrace::json
