// Tests whether a series of numbers grows, and how fast, without an assumption on its noise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mtrace::analyze {

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
  kFills,    // rose, then hardly any more: a cache
  kStep,     // changed once
  kSwings,   // up and down
  kShrinks,  // falls more often than chance allows
};

// Classifies a series. `level`: the rate of false alarms, that is, of series taken for growing
// although they only swing. "Hardly any more": the slope of the later half is less than a quarter
// of that of the earlier half.
Course course_of(const std::vector<int64_t>& values, double level);

const char* course_name(Course course);

}  // namespace mtrace::analyze
