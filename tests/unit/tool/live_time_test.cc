// How long freed blocks had lived between two looks at a ledger: what is known, and what is not.
#include <gtest/gtest.h>

#include "view/heap/expiry.h"

namespace mtrace::test {
namespace {

using analyze::live_time;
using analyze::LiveTime;
using ledger::LedgerStackState;

constexpr uint32_t kMost = (1u << 27) - 1;

// What the library would have counted for blocks that had lived so long.
LedgerStackState freed(LedgerStackState stack, const std::vector<uint32_t>& ticks) {
  for (const uint32_t each : ticks) {
    ++stack.now.freed_blocks;
    stack.now.lifetime += each;
    stack.shortest = std::max(stack.shortest, kMost + 1 - each);
    stack.longest = std::max(stack.longest, each + 1);
  }
  return stack;
}

std::string text(const LiveTime& time) {
  const auto limit = [](const auto& one) {
    return !one ? "?" : (one->exact ? "" : "~") + std::to_string(one->ticks);
  };
  return std::to_string(time.frees) + ": " + limit(time.least) + " " + std::to_string(time.mean) +
         " " + limit(time.most);
}

TEST(LiveTime, OfWhatWasFreedMeanwhile) {
  const LedgerStackState before = freed({}, {50, 100});
  EXPECT_EQ(text(live_time(nullptr, freed({}, {10, 20, 90}), true)), "3: 10 40 90");
  EXPECT_EQ(text(live_time(&before, freed(before, {10, 20, 180}), true)), "3: 10 70 180");
  EXPECT_EQ(text(live_time(&before, before, true)), "0: ? 0 ?");
}

// The ledger does not say that 60 was the least, nor 100 that it was of before.
TEST(LiveTime, LimitsFromBefore) {
  const LedgerStackState before = freed({}, {50, 100});
  EXPECT_EQ(text(live_time(&before, freed(before, {60, 80}), true)), "2: ~50 70 ~100");
  EXPECT_EQ(text(live_time(&before, freed(before, {20, 80}), true)), "2: 20 50 ~100");
  EXPECT_EQ(text(live_time(&before, freed(before, {60, 180}), true)), "2: ~50 120 180");
}

TEST(LiveTime, NothingWhereAReportTookThem) {
  const LedgerStackState before = freed({}, {50, 100});
  EXPECT_EQ(text(live_time(&before, freed(before, {10, 200}), false)), "2: ? 105 ?");
}

// A mean from a free that was half counted, or nonsense of a damaged file.
TEST(LiveTime, StaysWithinItsLimits) {
  LedgerStackState torn = freed({}, {10, 20});
  torn.now.lifetime = 1000;
  EXPECT_EQ(text(live_time(nullptr, torn, true)), "2: 10 20 20");
  torn.longest = kMost + 2;
  EXPECT_EQ(text(live_time(nullptr, torn, true)), "2: ? 500 ?");
  torn.longest = 5;  // below the shortest
  EXPECT_EQ(live_time(nullptr, torn, true).frees, 2u);
}

}  // namespace
}  // namespace mtrace::test
