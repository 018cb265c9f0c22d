// Blocks that live at a moment of an event log.
#include "model/events/live_blocks.h"

#include <gtest/gtest.h>

#include <map>

namespace mtrace::test {
namespace {

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

}  // namespace
}  // namespace mtrace::test
