#include "ledger/root_regions.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace mtrace::test {
namespace {

using ledger::RootRegions;

TEST(RootRegionsTest, TakesOutOneOfTheSameAddressAndSize) {
  const auto regions = std::make_unique<RootRegions>();
  for (uint32_t i = 0; i < format::kLedgerRootRegions; ++i) {
    EXPECT_TRUE(regions->put(0x1000, 8 + i / 2));
  }
  EXPECT_FALSE(regions->put(0x2000, 8));
  regions->take(0x1000, 4);
  regions->take(0x2000, 8);
  EXPECT_FALSE(regions->put(0x2000, 8));
  regions->take(0x1000, 9);
  EXPECT_TRUE(regions->put(0x2000, 8));
  EXPECT_FALSE(regions->put(0x2000, 8));
}

TEST(RootRegionsTest, AnEmptyRegionTakesNoPlace) {
  const auto regions = std::make_unique<RootRegions>();
  for (uint32_t i = 0; i < 2 * format::kLedgerRootRegions; ++i) {
    EXPECT_TRUE(regions->put(0, 8));
    EXPECT_TRUE(regions->put(0x1000, 0));
  }
  EXPECT_TRUE(regions->put(0x1000, 8));
}

// Each thread takes out what it has put in, among others of the same addresses: no place is lost.
TEST(RootRegionsTest, ThreadsLeaveNothingBehind) {
  const auto regions = std::make_unique<RootRegions>();
  const auto work = [&](uint64_t size) {
    for (uint64_t i = 0; i < 20000; ++i) {
      ASSERT_TRUE(regions->put(0x1000 + i % 3 * 16, size));
      regions->take(0x1000 + i % 3 * 16, size);
    }
  };
  std::thread other(work, 8);
  work(16);
  other.join();
  for (uint32_t i = 0; i < format::kLedgerRootRegions; ++i) EXPECT_TRUE(regions->put(0x4000, 8));
  EXPECT_FALSE(regions->put(0x4000, 8));
}

}  // namespace
}  // namespace mtrace::test
