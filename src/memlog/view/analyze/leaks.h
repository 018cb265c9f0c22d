// Finds the stacks of a process that grow over a series of states.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "view/analyze/series.h"

namespace mtrace::analyze {

// Tests whether a series of numbers grows, and how fast, without an assumption on its noise.

// Returns the probability that numbers in random order would rise at least as often as `values` do:
// the trend test of Mann (Econometrica 13, 1945) and Kendall (Rank Correlation Methods, 1948). Ties
// count neither way. Exact up to 30 values; above, by the normal distribution with corrections for
// ties and continuity. 1 for fewer than two values.
double growth_probability(const std::vector<int64_t>& values);

// Returns the least possible growth_probability() for so many values: 1 / count!.
double least_probability(size_t count);

struct Slope {
  double middle = 0;  // per step
  double low = 0;     // ends of an interval that holds the true slope with 95 percent probability
  double high = 0;
};

// Returns the median of the slopes between all pairs of values (Theil, Indagationes Mathematicae
// 12, 1950), with Sen's interval (JASA 63, 1968). Needs at least two values; thins out more than
// 300.
Slope slope(const std::vector<int64_t>& values);

enum class Course {
  kFlat,     // always the same
  kGrows,    // rises more often than chance allows, and still does
  kSteps,    // only rises, but too seldom to tell from chance: a vector that doubles
  kFills,    // rose, then hardly any more: a cache
  kStep,     // changed once
  kSwings,   // up and down
  kReturns,  // the same, and ends as it began
  kShrinks,  // falls more often than chance allows, or only falls
};

// Classifies a series. `level`: the rate of false alarms, that is, of series taken for growing
// although they only swing. "Hardly any more": the slope of the later half is less than a quarter
// of that of the earlier half.
Course course_of(const std::vector<int64_t>& values, double level);

const char* course_name(Course course);

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
