// Blocks that live at a moment of an event log.
#include "model/events/live_blocks.h"

#include <gtest/gtest.h>

#include <map>

namespace mtrace::test {
namespace {

using events::BlockChange;
using events::Event;
using events::Kind;
using events::LiveBlock;
using events::LiveBlocks;

constexpr uint64_t kAddress = 0x1000;

Event event(Kind kind, uint32_t thread, uint64_t requested = 0) {
  Event made;
  made.kind = kind;
  made.thread = thread;
  made.address = kAddress;
  made.requested = requested;
  return made;
}

Event at(uint64_t address, Event event) {
  event.address = address;
  return event;
}
Event moved(uint64_t old, Event event) {
  event.old_address = old;
  return event;
}

// Bytes by address.
std::multimap<uint64_t, uint64_t> all(const LiveBlocks& blocks) {
  std::multimap<uint64_t, uint64_t> found;
  blocks.for_each(
      [&](uint64_t address, const LiveBlock& block) { found.emplace(address, block.requested); });
  return found;
}
std::multimap<uint64_t, uint64_t> by_address(const LiveBlocks& blocks) {
  std::multimap<uint64_t, uint64_t> found;
  blocks.for_each_address(
      [&](uint64_t address, const LiveBlock& block) { found.emplace(address, block.requested); });
  return found;
}

// libc's realloc has moved a block, and another thread has got its place, before the event that
// says where it went.
TEST(LiveBlocks, ABlockThatReallocMovedLivesAtNoKnownAddress) {
  LiveBlocks blocks;
  blocks.apply(event(Kind::kAllocation, 1, 10));
  blocks.apply(event(Kind::kReallocBegin, 1));
  EXPECT_EQ(by_address(blocks), (std::multimap<uint64_t, uint64_t>{{kAddress, 10}}));
  blocks.apply(event(Kind::kAllocation, 2, 20));
  EXPECT_EQ(all(blocks), (std::multimap<uint64_t, uint64_t>{{kAddress, 20}, {kAddress, 10}}));
  EXPECT_EQ(by_address(blocks), (std::multimap<uint64_t, uint64_t>{{kAddress, 20}}));
  EXPECT_EQ(blocks.conflicts(), 0u);
}

// A realloc in a signal handler, inside another of its thread.
TEST(LiveBlocks, AReallocInsideAnotherEndsItsOwnBlock) {
  constexpr uint64_t kInner = 0x2000;
  LiveBlocks blocks;
  blocks.apply(event(Kind::kAllocation, 1, 10));
  blocks.apply(at(kInner, event(Kind::kAllocation, 1, 20)));
  blocks.apply(event(Kind::kReallocBegin, 1));
  blocks.apply(at(kInner, event(Kind::kReallocBegin, 1)));
  EXPECT_EQ(all(blocks), (std::multimap<uint64_t, uint64_t>{{kAddress, 10}, {kInner, 20}}));
  const BlockChange inner = blocks.apply(moved(kInner, at(0x3000, event(Kind::kRealloc, 1, 30))));
  EXPECT_EQ(inner.old.requested, 20u);
  EXPECT_EQ(inner.fresh.chain, 2u);
  const BlockChange outer = blocks.apply(moved(kAddress, at(0x4000, event(Kind::kRealloc, 1, 40))));
  EXPECT_TRUE(outer.ended);
  EXPECT_EQ(outer.old.requested, 10u);
  EXPECT_EQ(outer.fresh.chain, 1u);
  EXPECT_EQ(all(blocks), (std::multimap<uint64_t, uint64_t>{{0x3000, 30}, {0x4000, 40}}));
}

// Threads without a slot share a number, and their reallocs end in any order.
TEST(LiveBlocks, ReallocsOfThreadsWithoutASlotEndTheirOwnBlocks) {
  LiveBlocks blocks;
  constexpr uint64_t kMost = 100;
  for (uint64_t i = 1; i <= kMost; ++i) {
    blocks.apply(at(i << 12, event(Kind::kAllocation, 0, i)));
    blocks.apply(at(i << 12, event(Kind::kReallocBegin, 0)));
  }
  EXPECT_EQ(all(blocks).size(), kMost);
  for (uint64_t i = 1; i <= kMost; ++i) {
    SCOPED_TRACE(i);
    if (i % 3 == 0) {
      blocks.apply(at(i << 12, event(Kind::kReallocFailed, 0)));
      continue;
    }
    // The second has size 0, and ends in a free.
    const BlockChange change =
        i % 3 == 1 ? blocks.apply(moved(i << 12, at((i << 12) + 8, event(Kind::kRealloc, 0, 1))))
                   : blocks.apply(at(i << 12, event(Kind::kFree, 0)));
    EXPECT_TRUE(change.ended);
    EXPECT_EQ(change.old.requested, i);
  }
  std::multimap<uint64_t, uint64_t> expected;
  for (uint64_t i = 1; i <= kMost; ++i) {
    if (i % 3 == 0) expected.emplace(i << 12, i);
    if (i % 3 == 1) expected.emplace((i << 12) + 8, 1);
  }
  EXPECT_EQ(all(blocks), expected);
  EXPECT_EQ(blocks.unknown_frees(), 0u);
}

}  // namespace
}  // namespace mtrace::test
