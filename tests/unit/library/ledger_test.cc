// What the child of a fork makes of the tables when threads have vanished in the middle of an
// operation.
#include "ledger/ledger.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>

namespace mtrace::ledger {
namespace {

class LedgerTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(ledger_->init(nullptr));
    survivor_ = ledger_->threads.acquire(getpid(), gettid());
    // Alive for the kernel, whoever it is.
    vanished_ = ledger_->threads.acquire(getpid(), getppid());
  }
  uint32_t stack(uint64_t hash) {
    const uintptr_t frames[] = {hash};
    return ledger_->stacks.intern({0, hash, frames, 1, 0, false, false}, survivor_);
  }
  void count(uint32_t index, uint64_t bytes) {
    StackRecord& record = ledger_->stacks.record(index);
    const auto [set, owner] = ledger_->stacks.counting(record, survivor_);
    count_allocated(set, owner, {bytes, 1, 0});
  }
  Counters read(uint32_t index) const {
    return ledger_->stacks.read(ledger_->stacks.record(index));
  }

  std::unique_ptr<Ledger> ledger_ = std::make_unique<Ledger>();
  uint32_t survivor_ = 0;
  uint32_t vanished_ = 0;
};

TEST_F(LedgerTest, BlocksDecideAfterAFork) {
  const uint32_t whole = stack(1);
  const uint32_t half = stack(2);
  ASSERT_TRUE(ledger_->blocks.put(0x1000, {100, whole}));
  count(whole, 100);
  // Put, not yet counted.
  ASSERT_TRUE(ledger_->blocks.put(0x2000, {200, half}));
  const Operation under_way(ledger_->threads.slot(vanished_));

  ledger_->rebase_after_fork(survivor_, gettid());

  EXPECT_EQ(ledger_->lost_inflight, 1u);
  EXPECT_EQ(live_bytes(read(whole)), 100u);
  EXPECT_EQ(live_bytes(read(half)), 200u);
  EXPECT_EQ(ledger_->inherited.bytes, 300u);
  EXPECT_EQ(ledger_->inherited.blocks, 2u);
}

TEST_F(LedgerTest, NothingIsKnownAfterGoingOnUnseen) {
  const uint32_t index = stack(1);
  ASSERT_TRUE(ledger_->blocks.put(0x1000, {100, index}));
  count(index, 100);

  ledger_->forget_all(survivor_);

  Block block;
  EXPECT_FALSE(ledger_->blocks.take(0x1000, &block));
  EXPECT_EQ(read(index), Counters{});
}

}  // namespace
}  // namespace mtrace::ledger
