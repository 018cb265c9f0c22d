// Whether a series of numbers grows, and how fast, without assuming how its noise is distributed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mtrace::analyze {

// Mann (Econometrica 13, 1945) and Kendall (Rank Correlation Methods, 1948): the probability that
// numbers whose order is a matter of chance would rise as often as `values` do, or more often. Ties
// count neither way. Exact up to 30 values, then by the normal distribution with the variance
// corrected for ties and for continuity. 1 for fewer than two values.
double growth_probability(const std::vector<int64_t>& values);

// The smallest that growth_probability() can be for so many values: 1 / count!.
double least_probability(size_t count);

struct Slope {
  double middle = 0;  // per step
  double low = 0;     // of an interval that holds the true slope with a probability of 95 percent
  double high = 0;
};

// Theil (Indagationes Mathematicae 12, 1950): the median of the slopes between all pairs. The
// interval is Sen's (JASA 63, 1968). At least two values; more than 300 are thinned out.
Slope slope(const std::vector<int64_t>& values);

enum class Course {
  kFlat,     // always the same
  kGrows,    // more often up than chance allows, and still at it
  kFills,    // grew, and then hardly any more: a cache
  kStep,     // changed once
  kSwings,   // up and down
  kShrinks,  // more often down than chance allows
};

// `level`: the rate of false alarms: how often a series that only swings is taken for one that
// grows. "Hardly any more": the slope of the later half is less than a quarter of the earlier's.
Course course_of(const std::vector<int64_t>& values, double level);

const char* course_name(Course course);

}  // namespace mtrace::analyze
