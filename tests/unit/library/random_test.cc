#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "ledger/ledger.h"

namespace mtrace::ledger {
namespace {

// The first numbers of SplitMix64 for the seed 1234567, as published with the algorithm's reference
// implementation.
TEST(Random, IsSplitMix64) {
  Random random(1234567);
  for (uint64_t expected : {6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
                            4593380528125082431u, 16408922859458223821u}) {
    EXPECT_EQ(random(), expected);
  }
}

// Kolmogorov and Smirnov's test against the exponential distribution. Rounding down moves a value
// by less than one in 2^40.
TEST(Random, ExponentialDistribution) {
  constexpr uint64_t kMean = uint64_t{1} << 40;
  constexpr int kCount = 1'000'000;
  Random random(5);
  std::vector<double> drawn(kCount);
  for (double& value : drawn) value = static_cast<double>(random.exponential(kMean)) / kMean;
  std::sort(drawn.begin(), drawn.end());
  double distance = 0;
  double sum = 0;
  for (int i = 0; i < kCount; ++i) {
    const double at = -std::expm1(-drawn[static_cast<size_t>(i)]);
    distance = std::max(
        {distance, std::abs(at - i / double{kCount}), std::abs(at - (i + 1) / double{kCount})});
    sum += drawn[static_cast<size_t>(i)];
  }
  EXPECT_LT(distance, 1.95 / std::sqrt(kCount)) << "of 1,000 true ones one is as far away";
  EXPECT_NEAR(sum / kCount, 1, 4 / std::sqrt(kCount));
}

// A block of s bytes escapes when the distance is s + 1 or more: with what is rounded down that is
// exact for small means, too.
TEST(Random, RoundedDownItStaysExact) {
  constexpr uint64_t kMean = 3;
  constexpr int kCount = 1'000'000;
  Random random(6);
  std::vector<int> times(12);
  for (int i = 0; i < kCount; ++i) {
    const uint64_t drawn = random.exponential(kMean);
    if (drawn < times.size()) ++times[drawn];
  }
  for (size_t value = 0; value < times.size(); ++value) {
    const double x = static_cast<double>(value);
    const double expected = kCount * (std::exp(-x / kMean) - std::exp(-(x + 1) / kMean));
    EXPECT_NEAR(times[value], expected, 4 * std::sqrt(expected)) << value;
  }
}

}  // namespace
}  // namespace mtrace::ledger
