// The block table against a map that cannot be wrong.
#include "ledger/block_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

namespace mtrace::ledger {
namespace {

std::unique_ptr<BlockTable> make_table() {
  auto table = std::make_unique<BlockTable>();
  EXPECT_TRUE(table->init());
  return table;
}

TEST(BlockTable, SameAnswersAsAMap) {
  auto table = make_table();
  std::unordered_map<uintptr_t, Block> reference;
  std::vector<uintptr_t> live;
  std::mt19937_64 random(11);
  for (int i = 0; i < 400'000; ++i) {
    // Grows for the first half, shrinks for the second.
    const bool put = live.empty() || random() % 100 < (i < 200'000 ? 70u : 30u);
    if (put) {
      const uintptr_t address = (0x7f0000000000 + (random() & 0xfffffff)) & ~uintptr_t{15};
      if (reference.contains(address)) continue;
      const Block block = {random() & 0x7fffffffffff, static_cast<uint32_t>(random()) & 0x3ffffff};
      ASSERT_TRUE(table->put(address, block));
      reference[address] = block;
      live.push_back(address);
    } else {
      const size_t at = random() % live.size();
      const uintptr_t address = live[at];
      live[at] = live.back();
      live.pop_back();
      Block taken;
      ASSERT_TRUE(table->take(address, &taken));
      ASSERT_EQ(taken.size, reference[address].size);
      ASSERT_EQ(taken.stack, reference[address].stack);
      reference.erase(address);
      ASSERT_FALSE(table->take(address, &taken)) << "taken twice";
    }
  }
  Block taken;
  for (const uintptr_t address : live) ASSERT_TRUE(table->take(address, &taken));
  EXPECT_EQ(table->repair([](const Block&) { FAIL() << "a block is left"; }), 0u);
  EXPECT_EQ(table->lost_blocks(), 0u);
}

TEST(BlockTable, KeepsExtremeSizesAndStacks) {
  auto table = make_table();
  const Block blocks[] = {{0, 1}, {0, 0x10000}, {(uint64_t{1} << 47) - 1, 0xffffffff}, {1, 0xffff}};
  uintptr_t address = 0x7ffffffffff0;
  for (const Block& block : blocks) ASSERT_TRUE(table->put(address -= 16, block));
  address = 0x7ffffffffff0;
  for (const Block& block : blocks) {
    Block taken;
    ASSERT_TRUE(table->take(address -= 16, &taken));
    EXPECT_EQ(taken.size, block.size);
    EXPECT_EQ(taken.stack, block.stack);
  }
}

TEST(BlockTable, AddressesOfOneLineStillFind) {
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

TEST(BlockTable, ReservedBlockIsGoneUntilRestored) {
  auto table = make_table();
  ASSERT_TRUE(table->put(0x1000, {40, 2}));
  Block block;
  BlockTable::Slot* slot = table->reserve(0x1000, &block);
  ASSERT_NE(slot, nullptr);
  EXPECT_EQ(block.size, 40u);
  Block taken;
  EXPECT_FALSE(table->take(0x1000, &taken));
  EXPECT_EQ(table->reserve(0x1000, &taken), nullptr);
  table->restore(slot, 0x1000, block);
  ASSERT_TRUE(table->take(0x1000, &taken));
  EXPECT_EQ(taken.size, 40u);
  EXPECT_EQ(taken.stack, 2u);
}

TEST(BlockTable, RepairRemovesWhatWasLeftHalfDone) {
  auto table = make_table();
  ASSERT_TRUE(table->put(0x1000, {40, 2}));
  ASSERT_TRUE(table->put(0x2000, {50, 3}));
  ASSERT_TRUE(table->put(0x3000, {60, 4}));
  Block block;
  ASSERT_NE(table->reserve(0x1000, &block), nullptr);  // a realloc that never came back
  BlockTable::Slot* slot = table->reserve(0x2000, &block);
  slot->key = 0x2000;  // a put that had claimed its slot and no more
  slot->value = 0;
  uint64_t bytes = 0;
  EXPECT_EQ(table->repair([&](const Block& whole) { bytes += whole.size; }), 2u);
  EXPECT_EQ(bytes, 60u);
  EXPECT_FALSE(table->take(0x2000, &block));
}

TEST(BlockTable, ThreadsWithTheirOwnBlocks) {
  constexpr unsigned kThreads = 4;
  auto table = make_table();
  std::atomic<unsigned> ready = 0;
  std::atomic<uint64_t> wrong = 0;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      std::vector<uintptr_t> live;
      ++ready;
      while (ready < kThreads) std::this_thread::yield();
      for (uintptr_t i = 0; i < 100'000; ++i) {
        const uintptr_t address = 0x10000 + (i * kThreads + t) * 32;
        if (!table->put(address, {address ^ t, t})) ++wrong;
        live.push_back(address);
        if (random() % 2 == 0) {
          std::swap(live[random() % live.size()], live.back());
          Block taken;
          const uintptr_t gone = live.back();
          live.pop_back();
          if (!table->take(gone, &taken) || taken.size != (gone ^ t) || taken.stack != t) ++wrong;
        }
      }
      Block taken;
      for (const uintptr_t address : live) {
        if (!table->take(address, &taken) || taken.size != (address ^ t)) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
}

// More threads than cores fill a fresh table at once: one that is stopped while it makes the next
// level must not leave the others without room.
TEST(BlockTable, GrowthLosesNothing) {
  constexpr unsigned kThreads = 8;
  constexpr uintptr_t kBlocks = 3000;
  for (int round = 0; round < 60; ++round) {
    auto table = make_table();
    std::atomic<unsigned> ready = 0;
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        ++ready;
        while (ready < kThreads) std::this_thread::yield();
        for (uintptr_t i = 0; i < kBlocks; ++i) {
          table->put(0x7f0000000000 + (uintptr_t{t} << 26) + i * 48, {i, t});
        }
      });
    }
    for (auto& thread : threads) thread.join();
    ASSERT_EQ(table->lost_blocks(), 0u) << "round " << round;
    uint64_t found = 0;
    table->repair([&](const Block&) { ++found; });
    ASSERT_EQ(found, kThreads * kBlocks);
  }
}

// One thread allocates, another frees: the hand-over is the program's, the table must follow.
TEST(BlockTable, FreedByAnotherThread) {
  auto table = make_table();
  std::atomic<uintptr_t> handed = 0;
  uint64_t wrong = 0;
  std::thread consumer([&] {
    for (uintptr_t i = 1; i <= 100'000; ++i) {
      uintptr_t address;
      while ((address = handed.exchange(0, std::memory_order_acquire)) == 0) {
        std::this_thread::yield();
      }
      Block taken;
      if (!table->take(address, &taken) || taken.size != i) ++wrong;
    }
  });
  for (uintptr_t i = 1; i <= 100'000; ++i) {
    const uintptr_t address = 0x10000 + (i % 64) * 32;
    ASSERT_TRUE(table->put(address, {i, 9}));
    uintptr_t expected = 0;
    while (!handed.compare_exchange_weak(expected, address, std::memory_order_release)) {
      expected = 0;
      std::this_thread::yield();
    }
  }
  consumer.join();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace mtrace::ledger
