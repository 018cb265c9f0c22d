#include <gtest/gtest.h>
#include <time.h>

#include <random>

#include "ledger/block.h"
#include "modules/linkage.h"

namespace mtrace::ledger {
namespace {

TEST(Ticks, PackedTimesAreNeverLaterAndOffByLessThanAStep) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 1'000'000; ++i) {
    const uint64_t ticks = random() >> (27 + random() % 37);  // up to 2^37: 4.5 years
    const uint32_t packed = pack_ticks(ticks);
    ASSERT_LE(packed, kMostPackedTicks);
    ASSERT_LE(unpack_ticks(packed), ticks);
    ASSERT_LT(ticks - unpack_ticks(packed), packed_step(ticks));
  }
}

TEST(Ticks, AreExactForNineHours) {
  for (uint64_t ticks : {uint64_t{0}, uint64_t{1}, (uint64_t{1} << 25) - 1}) {
    EXPECT_EQ(unpack_ticks(pack_ticks(ticks)), ticks);
    EXPECT_EQ(packed_step(ticks), 1u);
  }
  EXPECT_GT(milliseconds_of(1u << 25), 9u * 3600 * 1000);
  EXPECT_EQ(packed_step(1u << 25), 16u);
}

TEST(Ticks, PackedTimesOrderAsTheTimes) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 1'000'000; ++i) {
    const uint64_t a = random() >> (27 + random() % 37);
    const uint64_t b = a + random() % 100;
    ASSERT_LE(pack_ticks(a), pack_ticks(b)) << a << ' ' << b;
  }
}

TEST(Ticks, WhatIsTooLateStandsStill) {
  EXPECT_EQ(pack_ticks(uint64_t{1} << 37), kMostPackedTicks);
  EXPECT_EQ(pack_ticks(UINT64_MAX), kMostPackedTicks);
}

// Against libc's reading of the same clock, before and after.
TEST(Clock, IsTheKernelsCoarseClock) {
  base::use_vdso_clock(modules::vdso_function(base::kVdsoClock));
  const auto libc = [] {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
  };
  for (int i = 0; i < 1000; ++i) {
    const uint64_t before = libc();
    const uint64_t ours = base::coarse_time();
    ASSERT_LE(before, ours);
    ASSERT_LE(ours, libc());
  }
  timespec step;
  clock_getres(CLOCK_MONOTONIC_COARSE, &step);
  EXPECT_EQ(base::coarse_resolution(), static_cast<uint64_t>(step.tv_nsec));
}

}  // namespace
}  // namespace mtrace::ledger
