#include "analyze/leaks.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "profile/text.h"

namespace mtrace::analyze {

std::vector<Finding> find_leaks(const Series& series, double level) {
  std::vector<Finding> findings;
  for (size_t row = 0; row < series.table().rows().size(); ++row) {
    if (!series.table().rows()[row].kind.empty()) continue;
    const std::vector<int64_t> values = series.values(row);
    Finding finding;
    finding.row = row;
    finding.course = course_of(values, level);
    if (finding.course == Course::kFlat) continue;
    finding.first = values.front();
    finding.last = values.back();
    finding.probability = growth_probability(values);
    if (finding.course == Course::kGrows) finding.slope = slope(values);
    findings.push_back(finding);
  }
  std::sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    return std::tuple(a.course, -a.slope.middle, -std::abs(a.last - a.first), a.row) <
           std::tuple(b.course, -b.slope.middle, -std::abs(b.last - b.first), b.row);
  });
  return findings;
}

Slope growth_of(const std::vector<Finding>& findings) {
  Slope sum;
  for (const Finding& finding : findings) {
    if (finding.course != Course::kGrows) continue;
    sum.middle += finding.slope.middle;
    sum.low += finding.slope.low;
    sum.high += finding.slope.high;
  }
  return sum;
}

Forecast forecast(const Series& series, const Slope& growth, int64_t limit) {
  const std::vector<State>& states = series.states();
  Forecast out;
  const double left = static_cast<double>(limit) - static_cast<double>(states.back().live);
  if (left <= 0) return out;
  out.states = left / growth.middle;
  out.earliest = left / growth.high;
  out.latest = growth.low > 0 ? left / growth.low : 0;
  const double time =
      profile::seconds_of(states.back().taken) - profile::seconds_of(states.front().taken);
  out.seconds = out.states * time / static_cast<double>(states.size() - 1);
  return out;
}

}  // namespace mtrace::analyze
