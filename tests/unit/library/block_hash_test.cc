// The hash table of blocks by itself.
#include "ledger/block_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "concurrent.h"

namespace mtrace::ledger {
namespace {

std::unique_ptr<BlockHash> make_table() {
  auto table = std::make_unique<BlockHash>();
  EXPECT_TRUE(table->init());
  return table;
}

TEST(BlockHash, LargeBlocksAreReallocatedAndTheirPlacesUsedAgain) {
  auto table = make_table();
  for (int round = 0; round < 100'000; ++round) {
    ASSERT_TRUE(table->put(0x1000, {uint64_t{1} << 40, 2, 3}));
    Block block;
    BlockHash::Slot* slot = table->reserve(0x1000, &block);
    ASSERT_NE(slot, nullptr);
    EXPECT_EQ(block.size, uint64_t{1} << 40);
    if (round % 2 == 0) {
      table->release(slot);
      continue;
    }
    table->restore(slot, 0x1000, block);
    ASSERT_TRUE(table->take(0x1000, &block));
    EXPECT_EQ(block.size, uint64_t{1} << 40);
  }
  EXPECT_EQ(table->lost_blocks(), 0u);
}

TEST(BlockHash, AddressesOfOneLineStillFind) {
  // Multiples of 2^40 in step with the hash's shift are as hard as a heap gets.
  auto table = make_table();
  std::vector<uintptr_t> addresses;
  for (uintptr_t i = 1; i <= 3000; ++i) addresses.push_back(i << 16);
  for (const uintptr_t address : addresses) ASSERT_TRUE(table->put(address, {address, 1}));
  for (const uintptr_t address : addresses) {
    Block taken;
    ASSERT_TRUE(table->take(address, &taken));
    EXPECT_EQ(taken.size, address);
  }
}

TEST(BlockHash, RepairRemovesWhatWasLeftHalfDone) {
  auto table = make_table();
  ASSERT_TRUE(table->put(0x1000, {40, 2}));
  ASSERT_TRUE(table->put(0x2000, {50, 3}));
  ASSERT_TRUE(table->put(0x3000, {60, 4}));
  Block block;
  ASSERT_NE(table->reserve(0x1000, &block), nullptr);  // a realloc that never came back
  BlockHash::Slot* slot = table->reserve(0x2000, &block);
  slot->key = 0x2000 >> 3;  // a put that had claimed its slot and no more
  slot->value = 0;
  uint64_t bytes = 0;
  EXPECT_EQ(table->repair([&](uintptr_t, const Block& whole) { bytes += whole.size; }), 2u);
  EXPECT_EQ(bytes, 60u);
  EXPECT_FALSE(table->take(0x2000, &block));
}

// More threads than cores fill a fresh table at once: one that is stopped while it makes the next
// level must not leave the others without room.
TEST(BlockHash, GrowthLosesNothing) {
  constexpr unsigned kThreads = 8;
  constexpr uintptr_t kBlocks = 3000;
  for (int round = 0; round < 60; ++round) {
    auto table = make_table();
    run_threads(kThreads, [&](unsigned t) {
      for (uintptr_t i = 0; i < kBlocks; ++i) {
        table->put(0x7f0000000000 + (uintptr_t{t} << 26) + i * 48, {i, t + 1});
      }
    });
    ASSERT_EQ(table->lost_blocks(), 0u) << "round " << round;
    uint64_t found = 0;
    table->repair([&](uintptr_t, const Block&) { ++found; });
    ASSERT_EQ(found, kThreads * kBlocks);
  }
}

// Levels take blocks again when a part of them has been looked at for what is empty: what is left
// of those blocks is still there.
TEST(BlockHash, ALevelThatIsUsedAgainIsNotTakenForEmpty) {
  auto table = make_table();
  std::mt19937 random(1);
  std::vector<uintptr_t> live;
  uintptr_t next = 0x7f0000000000;
  for (int round = 0; round < 200; ++round) {
    while (live.size() < 20'000) {
      live.push_back(next += 1024);
      ASSERT_TRUE(table->put(next, {600, 1, 0}));
    }
    std::shuffle(live.begin(), live.end(), random);
    for (const size_t left = random() % 3; live.size() > left; live.pop_back()) {
      Block block;
      ASSERT_TRUE(table->take(live.back(), &block)) << round;
    }
    table->retire_levels();
    table->give_back(random() % 60, true, false);
    size_t seen = 0;
    table->for_each([&](uintptr_t, const Block&) { ++seen; });
    ASSERT_EQ(seen, live.size()) << round;
  }
}

}  // namespace
}  // namespace mtrace::ledger
