#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ledger/ledger.h"

namespace mtrace::ledger {
namespace {

long double true_chance(uint64_t size, uint64_t mean) {
  return -std::expm1(-(static_cast<long double>(size) + 1) / static_cast<long double>(mean));
}

TEST(Sampling, ChanceIsOneLessTheExponentialFunction) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 300'000; ++i) {
    const uint64_t size = random() >> (17 + random() % 47);        // up to 2^47
    const uint64_t mean = 1 + (random() >> (34 + random() % 30));  // up to 2^30
    const long double found = static_cast<long double>(chance(size, mean)) * 0x1p-64L;
    const long double expected = true_chance(size, mean);
    ASSERT_LT(std::abs(found - expected) / expected, 0x1p-32L) << size << ' ' << mean;
  }
}

// What is recorded with the chance p has to weigh 1 / p on average, whatever is left over: over
// many addresses the means are s / p and 1 / p.
TEST(Sampling, WeightsAreUnbiased) {
  constexpr int kCount = 200'000;
  for (uint64_t mean : {1u, 1000u, 524288u, 1u << 30}) {
    for (uint64_t size : {uint64_t{0}, uint64_t{16}, uint64_t{700}, uint64_t{524287},
                          uint64_t{1} << 20, uint64_t{1} << 40}) {
      long double bytes = 0;
      long double blocks = 0;
      for (int i = 0; i < kCount; ++i) {
        const Weight weight = weigh_sample(mean, 0x5555'0000'0010u + 16 * static_cast<uint64_t>(i),
                                           {size, 1, static_cast<uint32_t>(i / 1000)});
        bytes += static_cast<long double>(weight.bytes);
        blocks += static_cast<long double>(weight.blocks);
      }
      const long double p = true_chance(size, mean);
      const auto near = [&](long double sum, long double each) {
        // Of the rounding: at most 1/2 a block; of the weight: 2^-31.
        return std::abs(sum / kCount - each) <= 2.5L / std::sqrt(kCount) + each * 0x1p-30L;
      };
      EXPECT_PRED2(near, bytes, static_cast<long double>(size) / p) << size << ' ' << mean;
      EXPECT_PRED2(near, blocks, 1 / p) << size << ' ' << mean;
    }
  }
}

TEST(Sampling, WeighsABlockAlwaysTheSame) {
  const Block block = {60'000, 1, 77};
  const Weight first = weigh_sample(100'000, 0x1230, block);
  for (int i = 0; i < 100; ++i) {
    const Weight again = weigh_sample(100'000, 0x1230, block);
    EXPECT_EQ(again.bytes, first.bytes);
    EXPECT_EQ(again.blocks, first.blocks);
  }
}

TEST(Sampling, EveryBlockForItselfWithoutIt) {
  EXPECT_EQ(weigh(0x1230, {99, 1, 5}).bytes, 99u);
  EXPECT_EQ(weigh(0x1230, {99, 1, 5}).blocks, 1u);
}

// What is surely recorded counts as itself.
TEST(Sampling, LargeBlocksAreExact) {
  const Block block = {1 << 20, 1, 5};
  EXPECT_EQ(weigh_sample(4096, 0x7000'0010, block).bytes, block.size);
  EXPECT_EQ(weigh_sample(4096, 0x7000'0010, block).blocks, 1u);
}

}  // namespace
}  // namespace mtrace::ledger
