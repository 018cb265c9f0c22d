// Finds the stacks of a process that grow over a series of states.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analyze/series.h"
#include "analyze/trend.h"

namespace mtrace::analyze {

struct Finding {
  size_t row = 0;  // index in Series::table()
  Course course = Course::kFlat;
  int64_t first = 0;  // bytes at the first state
  int64_t last = 0;
  double probability = 1;  // growth_probability()
  Slope slope;             // bytes per state; for growing stacks
};

// When `limit` bytes will be live if the growth continues, in states after the last; 0: now.
struct Forecast {
  double states = 0;
  double earliest = 0;
  double latest = 0;   // at the slow end of the interval; 0: never
  double seconds = 0;  // time of `states`, at the pace of the series
};

// Returns a finding for each heap stack that changed: growing stacks first, the fastest first; then
// the others by course and size of the change. `level`: see course_of().
std::vector<Finding> find_leaks(const Series& series, double level);

// Returns the growth of all growing stacks together, per state. Its interval is the sum of the
// stacks' intervals, so it is rather too wide.
Slope growth_of(const std::vector<Finding>& findings);

// Needs growth above 0.
Forecast forecast(const Series& series, const Slope& growth, int64_t limit);

}  // namespace mtrace::analyze
