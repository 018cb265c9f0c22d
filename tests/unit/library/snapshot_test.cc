// What a report reads of counters that are half-way through a change.
#include "report/snapshot.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

namespace mtrace::report {
namespace {

using ledger::CounterSet;
using ledger::Extremes;
using ledger::extremes_of;
using ledger::kMostPackedTicks;

constexpr uintptr_t kFrames[] = {0x1000, 0x2000};

class SnapshotTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(ledger_->init(nullptr));
    index_ = ledger_->stacks.intern({0, 7, kFrames, 2, 0, false, false}, 1);
    ledger::count_allocated(own(), true, {100, 1, 0});
    ledger::count_freed(own(), true, {100, 1, 0, 5, false, false});
  }
  CounterSet& own() { return ledger_->stacks.record(index_).own; }
  Extremes taken() {
    Snapshot snapshot;
    EXPECT_TRUE(snapshot.take(*ledger_, Listed::kActive));
    EXPECT_EQ(snapshot.size(), 1u);
    return snapshot.entry(0).lifetimes;
  }
  static uint64_t shortest(Extremes e) { return kMostPackedTicks + 1 - e.shortest; }
  static uint64_t longest(Extremes e) { return e.longest - 1; }

  // Untouched parts of it take no memory.
  // The stack number `n` of many that have nothing in common.
  uint32_t numbered(uint64_t n) {
    const uintptr_t frames[] = {0x10000 + 16 * n};
    return ledger_->stacks.intern({0, n * 0x9e3779b97f4a7c15u, frames, 1, 0, false, false}, 1);
  }

  std::unique_ptr<ledger::Ledger> ledger_ = std::make_unique<ledger::Ledger>();
  uint32_t index_ = 0;
};

TEST_F(SnapshotTest, ShortestLifetimeIsNeverLongerThanTheLongest) {
  own().longest = extremes_of(3).longest;  // its shortest went with the report before
  EXPECT_EQ(shortest(taken()), 5u);
  EXPECT_EQ(longest(taken()), 5u);
  own().shortest = 0;
  EXPECT_EQ(shortest(taken()), 5u);
  EXPECT_EQ(longest(taken()), 5u);
}

TEST_F(SnapshotTest, LifetimesOfFreesThatAreNotCountedYetAreLeftToTheNext) {
  Snapshot first;
  ASSERT_TRUE(first.take(*ledger_, Listed::kActive));
  first.remember(*ledger_);
  raise_extremes(own(), extremes_of(9));
  ledger::count_allocated(own(), true, {100, 1, 0});
  EXPECT_EQ(taken().longest, 0u);
  EXPECT_EQ(own().longest, extremes_of(9).longest);
}

TEST_F(SnapshotTest, SeesEveryStackThatHoldsMemoryWhileOthersAppear) {
  constexpr uint64_t kHolders = 2000;
  for (uint64_t i = 1; i <= kHolders; ++i) {
    ledger::count_allocated(ledger_->stacks.record(numbered(i)).own, true, {8, 1, 0});
  }
  std::atomic<uint64_t> made = 0;
  const std::jthread other([&](const std::stop_token& stop) {
    for (uint64_t i = kHolders + 1; !stop.stop_requested() && i < 200'000; ++i) {
      numbered(i);
      made = i - kHolders;
    }
  });
  for (int i = 0; i < 60 || made == 0; ++i) {
    const uint64_t before = made;
    Snapshot snapshot;
    ASSERT_TRUE(snapshot.take(*ledger_, Listed::kActive));
    ASSERT_EQ(ledger::live_blocks(snapshot.total()), kHolders) << made - before << " stacks more";
    snapshot.remember(*ledger_);
  }
  EXPECT_GT(made, 0u);
}

}  // namespace
}  // namespace mtrace::report
