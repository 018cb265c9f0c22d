// The statistics of memlog leaks: against values that can be counted or looked up, and on simulated
// series with a fixed seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "view/analyze/series.h"

namespace mtrace::analyze {
namespace {

using Values = std::vector<int64_t>;

int64_t score(const Values& values) {
  int64_t sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = i + 1; j < values.size(); ++j) {
      sum += (values[j] > values[i]) - (values[j] < values[i]);
    }
  }
  return sum;
}

// By going through all orders.
double counted(const Values& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  double all = 0;
  double as_much = 0;
  do {
    Values one;
    for (const size_t i : order) one.push_back(values[i]);
    ++all;
    as_much += score(one) >= score(values);
  } while (std::next_permutation(order.begin(), order.end()));
  return as_much / all;
}

TEST(Trend, ProbabilityIsThatOfAllOrders) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    Values values(1 + random() % 7);
    for (int64_t& value : values) value = static_cast<int64_t>(random() % (1 + round % 9));
    EXPECT_NEAR(growth_probability(values), counted(values), 1e-12);
  }
  EXPECT_EQ(growth_probability({}), 1);
  EXPECT_EQ(growth_probability({1, 1, 1, 1}), 1);
  EXPECT_NEAR(growth_probability({1, 2, 3, 4, 5}), 1.0 / 120, 1e-12);
  EXPECT_NEAR(least_probability(5), 1.0 / 120, 1e-12);
}

// Kendall, Rank Correlation Methods, table of S: for n = 10, S >= 21 has probability 0.036, S >= 29
// 0.0046; n = 9, S >= 20 0.022.
TEST(Trend, ProbabilityIsAsInKendallsTable) {
  const auto with_score = [](size_t n, int64_t wanted) {
    Values values(n);
    std::iota(values.begin(), values.end(), 1);
    // Each exchange of neighbours takes two from the score.
    for (size_t end = n - 1; score(values) > wanted && end > 0; --end) {
      for (size_t i = 0; i < end && score(values) > wanted; ++i) {
        std::swap(values[i], values[i + 1]);
      }
    }
    EXPECT_EQ(score(values), wanted);
    return growth_probability(values);
  };
  EXPECT_NEAR(with_score(10, 21), 0.036, 0.0005);
  EXPECT_NEAR(with_score(10, 29), 0.0046, 0.00005);
  EXPECT_NEAR(with_score(9, 20), 0.022, 0.0005);
}

// Beyond 30 values, against shuffling them.
TEST(Trend, TheNormalProbabilityIsThatOfMostOrders) {
  std::mt19937 random(2);
  for (const int kinds : {3, 10, 1000}) {
    Values values(40);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<int64_t>(random() % static_cast<unsigned>(kinds)) * 10 +
                  static_cast<int64_t>(i) * kinds / 20;
    }
    constexpr int kOrders = 20000;
    const int64_t found = score(values);
    const double probability = growth_probability(values);
    int as_much = 0;
    for (int i = 0; i < kOrders; ++i) {
      std::shuffle(values.begin(), values.end(), random);
      as_much += score(values) >= found;
    }
    EXPECT_NEAR(probability, static_cast<double>(as_much) / kOrders, 0.01) << kinds;
  }
}

TEST(Trend, SlopeIsTheMedianWithItsInterval) {
  const Slope line = slope({10, 13, 16, 19, 22});
  EXPECT_EQ(line.middle, 3);
  EXPECT_EQ(line.low, 3);
  EXPECT_EQ(line.high, 3);
  EXPECT_NEAR(slope({0, 10, 0, 10, 1000, 10, 20}).middle, 10.0 / 3, 1e-12);  // despite the outlier
  Values thick;
  for (int i = 0; i < 3000; ++i) thick.push_back(i * 7);
  EXPECT_NEAR(slope(thick).middle, 7, 1e-9);
}

// Series as programs make them.
class Simulated : public testing::Test {
 protected:
  static constexpr int kSeries = 4000;

  int64_t noise(double size) {
    return static_cast<int64_t>(std::llround(std::normal_distribution<double>(0, size)(random_)));
  }
  template <typename Value>
  double rate(size_t states, Course course, double level, Value value) {
    int found = 0;
    for (int i = 0; i < kSeries; ++i) {
      Values values(states);
      for (size_t k = 0; k < states; ++k) values[k] = value(k);
      found += course_of(values, level) == course;
    }
    return static_cast<double>(found) / kSeries;
  }

  std::mt19937 random_{20261121};
};

// The rate that is asked for, within what 4,000 series can tell (four standard deviations), and
// nothing of it where the noise is few values with many ties.
TEST_F(Simulated, FalseAlarmsAreNoMoreThanStated) {
  for (const double level : {0.01, 0.05}) {
    const double most = level + 4 * std::sqrt(level * (1 - level) / kSeries);
    for (const size_t states : {5u, 8u, 12u, 30u, 60u}) {
      EXPECT_LE(rate(states, Course::kGrows, level, [&](size_t) { return 100000 + noise(5000); }),
                most)
          << states << " normal";
      EXPECT_LE(rate(states, Course::kGrows, level,
                     [&](size_t) { return static_cast<int64_t>(random_() % 3) * 4096; }),
                most)
          << states << " few values";
      EXPECT_LE(rate(states, Course::kGrows, level,
                     [&](size_t) { return random_() % 20 == 0 ? 1 << 20 : 4096; }),
                most)
          << states << " rare bursts";
    }
  }
}

// The test itself, without what sorts caches out, keeps its rate closely.
TEST_F(Simulated, TheTestsRateIsTheStatedOne) {
  for (const size_t states : {12u, 30u, 60u}) {
    int found = 0;
    for (int i = 0; i < kSeries; ++i) {
      Values values(states);
      for (int64_t& value : values) value = noise(100000);
      found += growth_probability(values) <= 0.05;
    }
    EXPECT_NEAR(static_cast<double>(found) / kSeries, 0.05, 0.015) << states;
  }
}

TEST_F(Simulated, LeaksAreFound) {
  // The same each round, and with noise as large as what leaks in a round.
  EXPECT_EQ(rate(5, Course::kGrows, 0.01, [](size_t k) { return static_cast<int64_t>(4096 * k); }),
            1);
  EXPECT_GE(rate(12, Course::kGrows, 0.01,
                 [&](size_t k) { return static_cast<int64_t>(4096 * k) + noise(4096); }),
            0.95);
  EXPECT_GE(rate(30, Course::kGrows, 0.01,
                 [&](size_t k) { return static_cast<int64_t>(1024 * k) + noise(4096); }),
            0.95);
}

TEST_F(Simulated, CachesAreToldApart) {
  const auto fills = [&](double speed, double swing) {
    return rate(20, Course::kGrows, 0.01, [&, speed, swing](size_t k) {
      const double full = 1 - std::exp(-speed * static_cast<double>(k));
      return static_cast<int64_t>(std::llround(1e6 * full)) + noise(swing);
    });
  };
  EXPECT_EQ(fills(0.5, 0), 0);
  EXPECT_LE(fills(0.5, 2000), 0.05);
  EXPECT_LE(fills(1, 10000), 0.05);
  EXPECT_EQ(course_of({0, 5, 9, 12, 12, 12, 12, 12, 12, 12}, 0.01), Course::kFills);
  EXPECT_EQ(course_of({0, 0, 0, 7, 7, 7, 7, 7, 7, 7}, 0.01), Course::kStep);
  EXPECT_EQ(course_of({3, 3, 3, 3, 3}, 0.01), Course::kFlat);
  EXPECT_EQ(course_of({1, 9, 2, 8, 3, 7, 2, 9}, 0.01), Course::kSwings);
  EXPECT_EQ(course_of({9, 8, 7, 5, 3, 1}, 0.01), Course::kShrinks);
  EXPECT_EQ(course_of({9, 9, 9, 4, 4, 2}, 0.01), Course::kShrinks);
  EXPECT_EQ(course_of({64, 128, 128, 256, 256, 256}, 0.01), Course::kSteps);
  EXPECT_EQ(course_of({0, 5, 0, 5, 5, 0}, 0.01), Course::kReturns);
}

// The interval holds the true slope as often as it says.
TEST_F(Simulated, IntervalsHoldTheTruth) {
  for (const size_t states : {10u, 25u}) {
    int held = 0;
    for (int i = 0; i < kSeries; ++i) {
      Values values(states);
      for (size_t k = 0; k < states; ++k) {
        values[k] = static_cast<int64_t>(1000 * k) + noise(3000);
      }
      const Slope found = slope(values);
      held += found.low <= 1000 && 1000 <= found.high;
    }
    EXPECT_GE(static_cast<double>(held) / kSeries, 0.94) << states;
    EXPECT_LE(static_cast<double>(held) / kSeries, 0.98) << states;
  }
}

}  // namespace
}  // namespace mtrace::analyze
