// Which stacks of a process grow from state to state.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analyze/series.h"
#include "analyze/trend.h"

namespace mtrace::analyze {

struct Finding {
  size_t row = 0;  // of Series::table()
  Course course = Course::kFlat;
  int64_t first = 0;  // bytes at the first state
  int64_t last = 0;
  double probability = 1;  // growth_probability()
  Slope slope;             // bytes a state; of those that grow
};

// When `limit` bytes will be live if all goes on, in states from the last one on. 0: now.
struct Forecast {
  double states = 0;
  double earliest = 0;
  double latest = 0;   // 0: never, at the slow end of the interval
  double seconds = 0;  // of `states`, at the pace of the series
};

// A finding for each heap stack that changed, those that grow first, the fastest first; then by
// course and size of the change. `level` as in course_of().
std::vector<Finding> find_leaks(const Series& series, double level);

// What the stacks that grow add to the heap a state. The ends are sums of ends, so the interval is
// rather too wide.
Slope growth_of(const std::vector<Finding>& findings);

// Not for growth that is not above 0.
Forecast forecast(const Series& series, const Slope& growth, int64_t limit);

}  // namespace mtrace::analyze
