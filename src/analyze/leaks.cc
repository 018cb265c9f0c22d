#include "analyze/leaks.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <tuple>

namespace mtrace::analyze {
namespace {

// Seconds since 1970 of 2026-11-20T20:15:31.123456Z.
double seconds_of(const std::string& time) {
  std::tm parts = {};
  long microseconds = 0;
  if (std::sscanf(time.c_str(), "%d-%d-%dT%d:%d:%d.%ldZ", &parts.tm_year, &parts.tm_mon,
                  &parts.tm_mday, &parts.tm_hour, &parts.tm_min, &parts.tm_sec,
                  &microseconds) != 7) {
    return 0;
  }
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  return static_cast<double>(::timegm(&parts)) + static_cast<double>(microseconds) / 1e6;
}

}  // namespace

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
  const double time = seconds_of(states.back().taken) - seconds_of(states.front().taken);
  out.seconds = out.states * time / static_cast<double>(states.size() - 1);
  return out;
}

}  // namespace mtrace::analyze
