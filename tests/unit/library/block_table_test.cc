// The block table against a map that cannot be wrong: with the hash table alone, and with the
// shadow of the heap for allocators whose blocks may share a granule, and for those that never do.
#include "ledger/block_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/process.h"
#include "concurrent.h"
#include "ledger/thread_slots.h"

namespace mtrace::ledger {
namespace {

using Granules = HeapShadow::Granules;
// With room for a page for each part.
constexpr BlockTable::Process kRoomy = {[] { return uint64_t{1} << 40; }, [](bool) { return true; },
                                        [](uint64_t) {}};

class BlockTables : public testing::TestWithParam<Granules> {
 protected:
  std::unique_ptr<BlockTable> make_table() {
    auto table = std::make_unique<BlockTable>();
    EXPECT_TRUE(table->init());
    table->use_shadow(GetParam(), kRoomy);
    return table;
  }
  bool own() const { return GetParam() == Granules::kOwn; }
};
std::string name_of(const testing::TestParamInfo<Granules>& test) {
  const char* const names[] = {"Without", "Shared", "Own"};
  return names[static_cast<int>(test.param)];
}
INSTANTIATE_TEST_SUITE_P(Shadows, BlockTables,
                         testing::Values(Granules::kUnused, Granules::kShared, Granules::kOwn),
                         name_of);
using BlockTablesWithShadow = BlockTables;
INSTANTIATE_TEST_SUITE_P(Shadows, BlockTablesWithShadow,
                         testing::Values(Granules::kShared, Granules::kOwn), name_of);
using BlockTablesOfNeighbours = BlockTables;  // in one granule
INSTANTIATE_TEST_SUITE_P(Shadows, BlockTablesOfNeighbours,
                         testing::Values(Granules::kUnused, Granules::kShared), name_of);

TEST_P(BlockTables, SameAnswersAsAMap) {
  auto table = make_table();
  std::unordered_map<uintptr_t, Block> reference;
  std::vector<uintptr_t> live;
  std::unordered_set<uintptr_t> granules;
  std::mt19937_64 random(11);
  for (int i = 0; i < 400'000; ++i) {
    // Grows for the first half, shrinks for the second.
    const bool put = live.empty() || random() % 100 < (i < 200'000 ? 70u : 30u);
    if (put) {
      // In places so near that granules are shared, and at the end of the address space.
      const uintptr_t base = random() % 4 == 0 ? 0x7ffffff00000 : 0x7f0000000000;
      const uintptr_t address = base + (random() & (base >> 20 & 1 ? 0xffff8 : 0xfffff8));
      if (reference.contains(address)) continue;
      if (own() && !granules.insert(address >> 5).second) continue;
      // Most are small; one in 1024 is of a size that stands in a place of its own.
      const uint64_t size_mask = random() % 1024 == 0 ? 0x7fffffffffff
                                 : random() % 4 == 0  ? 0x3fffffff
                                                      : 0x1ff;
      const Block block = {random() & size_mask,
                           1 + static_cast<uint32_t>(random()) % ((1u << 26) - 1),
                           static_cast<uint32_t>(random()) & kMostPackedTicks};
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
      ASSERT_EQ(taken.birth, reference[address].birth);
      reference.erase(address);
      granules.erase(address >> 5);
      ASSERT_FALSE(table->take(address, &taken)) << "taken twice";
    }
  }
  size_t visited = 0;
  table->for_each([&](uintptr_t address, const Block& block) {
    ++visited;
    const auto found = reference.find(address);
    ASSERT_NE(found, reference.end());
    EXPECT_EQ(found->second.size, block.size);
    EXPECT_EQ(found->second.stack, block.stack);
    EXPECT_EQ(found->second.birth, block.birth);
  });
  EXPECT_EQ(visited, live.size());
  Block taken;
  for (const uintptr_t address : live) ASSERT_TRUE(table->take(address, &taken));
  EXPECT_EQ(table->repair([](uintptr_t, const Block&) { FAIL() << "a block is left"; }), 0u);
  EXPECT_EQ(table->lost_blocks(), 0u);
}

TEST_P(BlockTables, KeepsExtremeValues) {
  auto table = make_table();
  constexpr uint32_t kLastStack = (1u << 26) - 1;
  for (const uintptr_t address : {0xfffffffffff8ul, 0x10ul, 0x38ul, 0x555555554000ul}) {
    for (const uint64_t size : {uint64_t{0}, uint64_t{511}, uint64_t{512}, (uint64_t{1} << 29) - 1,
                                uint64_t{1} << 29, kMostBytes}) {
      for (const uint32_t stack : {1u, 0xffffu, 0x10000u, kLastStack}) {
        for (const uint32_t birth : {0u, 1u, (1u << 20) - 1, 1u << 20, kMostPackedTicks}) {
          ASSERT_TRUE(table->put(address, {size, stack, birth}));
          Block seen = {};
          const BlockTable::Reserved reserved = table->reserve(address, &seen);
          ASSERT_TRUE(reserved.known);
          Block other;
          EXPECT_FALSE(table->take(address, &other));
          EXPECT_FALSE(table->reserve(address, &other).known);
          table->restore(reserved, address, seen);
          Block taken;
          ASSERT_TRUE(table->take(address, &taken));
          EXPECT_EQ(taken.size, size);
          EXPECT_EQ(taken.stack, stack);
          EXPECT_EQ(taken.birth, birth);
          EXPECT_FALSE(table->take(address, &taken));
        }
      }
    }
  }
  EXPECT_EQ(table->lost_blocks(), 0u);
}

TEST_P(BlockTables, AddressesThatNoAllocatorHandsOutAreCountedAsLost) {
  auto table = make_table();
  EXPECT_FALSE(table->put(0x1004, {1, 1, 0}));
  EXPECT_FALSE(table->put(uintptr_t{1} << 48, {1, 1, 0}));
  EXPECT_FALSE(table->put(~uintptr_t{7}, {1, 1, 0}));
  EXPECT_EQ(table->lost_blocks(), 3u);
  Block block;
  EXPECT_FALSE(table->take(0x1004, &block));
  EXPECT_FALSE(table->take(uintptr_t{1} << 48, &block));
  EXPECT_FALSE(table->reserve(~uintptr_t{7}, &block).known);
}

// What the table tells of blocks that were freed past the hooks.
uint64_t g_missed = 0;
uint64_t g_missed_bytes = 0;
void count_missed(uintptr_t, const Block& block) {
  ++g_missed;
  g_missed_bytes += block.size;
}
class MissedFrees {
 public:
  MissedFrees() {
    g_missed = g_missed_bytes = 0;
    g_on_missed_free = count_missed;
  }
  ~MissedFrees() { g_on_missed_free = nullptr; }
};

// An allocator, or a library bound to it, that frees where no hook sees it gives the same address
// out again and again, for blocks of all sizes.
TEST_P(BlockTables, BlocksFreedUnseenMakeRoomForTheirSuccessors) {
  const MissedFrees missed;
  auto table = make_table();
  constexpr uint64_t kTimes = 300'000;
  uint64_t bytes = 0;
  for (uint64_t i = 1; i <= kTimes; ++i) {
    ASSERT_TRUE(table->put(0x7f1234567890, {i % 1000, 1}));
    bytes += i % 1000;
  }
  uint64_t kept = 0;
  table->for_each([&](uintptr_t, const Block& block) {
    ++kept;
    bytes -= block.size;
  });
  EXPECT_LE(kept, GetParam() == Granules::kUnused ? 1u : 2u);
  EXPECT_EQ(g_missed, kTimes - kept);
  EXPECT_EQ(g_missed_bytes, bytes);
  EXPECT_EQ(table->lost_blocks(), 0u);
  Block block;
  for (uint64_t i = 0; i < kept; ++i) EXPECT_TRUE(table->take(0x7f1234567890, &block));
  EXPECT_FALSE(table->take(0x7f1234567890, &block));
}

// Whatever was missed before, a free finds the block that was put last.
TEST_P(BlockTables, AFreeNeverFindsAStaleRecord) {
  const MissedFrees missed;
  std::mt19937 random(1);
  for (unsigned round = 0; round < 200; ++round) {
    auto table = make_table();
    std::map<uintptr_t, uint32_t> live;  // the stack of the newest block at each address
    for (uint32_t stack = 1; stack <= 1000; ++stack) {
      const uintptr_t address = 0x5555555a0000 + random() % 64 * 32;
      const uint64_t size = random() % 3 != 0 ? random() % 512 : 512 + random() % 10'000;
      if (random() % 2 == 0 && live.contains(address)) {
        Block block;
        ASSERT_TRUE(table->take(address, &block));
        ASSERT_EQ(block.stack, live[address]) << "round " << round;
        live.erase(address);
      }
      // Otherwise freed past the hooks, if there was one.
      ASSERT_TRUE(table->put(address, {size, stack}));
      live[address] = stack;
    }
  }
  EXPECT_GT(g_missed, 10'000u);
}

// A large block whose address came back to a small one is found out when a report looks; one whose
// neighbour is small, and one that was freed as it should be, stay as they are.
TEST_P(BlockTablesWithShadow, LargeBlocksThatSmallOnesReplacedAreDropped) {
  const MissedFrees missed;
  auto table = make_table();
  constexpr uintptr_t kBase = 0x5555555a0000;
  for (uint32_t i = 0; i < 3000; ++i) ASSERT_TRUE(table->put(kBase + i * 1024, {900 + i, 1 + i}));
  for (uint32_t i = 0; i < 3000; i += 3) {
    ASSERT_TRUE(table->put(kBase + i * 1024, {10, 5000 + i}));
    ASSERT_TRUE(table->put(kBase + (i + 1) * 1024 + 512, {10, 5000 + i}));
  }
  table->drop_replaced();
  EXPECT_EQ(g_missed, 1000u);
  EXPECT_EQ(g_missed_bytes, 1000u * (900 + 2997 / 2) + 500);
  uint64_t blocks = 0;
  table->for_each([&](uintptr_t, const Block&) { ++blocks; });
  EXPECT_EQ(blocks, 4000u);
  for (uint32_t i = 0; i < 3000; ++i) {
    Block block;
    ASSERT_TRUE(table->take(kBase + i * 1024, &block));
    EXPECT_EQ(block.stack, i % 3 == 0 ? 5000 + i : 1 + i);
    EXPECT_FALSE(table->take(kBase + i * 1024, &block));
  }
}

TEST_P(BlockTables, NothingIsLeftAfterForgetAll) {
  auto table = make_table();
  for (int round = 0; round < 3; ++round) {
    for (uintptr_t i = 0; i < 5000; ++i) {
      ASSERT_TRUE(table->put(0x555555554000 + i * 1024, {i % 700, 1}));
    }
    table->forget_all();
    table->for_each([](uintptr_t, const Block&) { FAIL() << "a block is left"; });
  }
}

// A realloc under way, while a neighbour of the same granule comes: the block has a place again.
TEST_P(BlockTablesOfNeighbours, RestoredBesideANeighbour) {
  auto table = make_table();
  Block block;
  ASSERT_TRUE(table->put(0x1000, {40, 2}));
  const BlockTable::Reserved reserved = table->reserve(0x1000, &block);
  ASSERT_TRUE(reserved.known);
  ASSERT_TRUE(table->put(0x1008, {50, 3}));
  table->restore(reserved, 0x1000, block);
  ASSERT_TRUE(table->put(0x1018, {60, 4}));
  for (const auto& [address, size] : {std::pair{0x1000, 40u}, {0x1018, 60u}, {0x1008, 50u}}) {
    ASSERT_TRUE(table->take(address, &block));
    EXPECT_EQ(block.size, size);
  }
  EXPECT_EQ(table->lost_blocks(), 0u);
}

TEST_P(BlockTables, ThreadsWithTheirOwnBlocks) {
  constexpr unsigned kThreads = 4;
  auto table = make_table();
  std::atomic<uint64_t> wrong = 0;
  run_threads(kThreads, [&](unsigned t) {
    std::mt19937_64 random(t);
    std::vector<uintptr_t> live;
    for (uintptr_t i = 0; i < 100'000; ++i) {
      const uintptr_t address = 0x10000 + (i * kThreads + t) * (own() ? 32 : 16);
      if (!table->put(address, {(address ^ t) % 700, t + 1})) ++wrong;
      live.push_back(address);
      if (random() % 2 == 0) {
        std::swap(live[random() % live.size()], live.back());
        Block taken;
        const uintptr_t gone = live.back();
        live.pop_back();
        if (!table->take(gone, &taken) || taken.size != (gone ^ t) % 700 || taken.stack != t + 1)
          ++wrong;
      }
    }
    Block taken;
    for (const uintptr_t address : live) {
      if (!table->take(address, &taken) || taken.size != (address ^ t) % 700) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0u);
}

// One thread allocates, another frees: the hand-over is the program's, the table must follow.
TEST_P(BlockTables, FreedByAnotherThread) {
  auto table = make_table();
  std::atomic<uintptr_t> handed = 0;
  uint64_t wrong = 0;
  std::thread consumer([&] {
    for (uintptr_t i = 1; i <= 30'000; ++i) {
      uintptr_t address;
      while ((address = handed.exchange(0, std::memory_order_acquire)) == 0) {
        std::this_thread::yield();
      }
      Block taken;
      if (!table->take(address, &taken) || taken.size != i % 700) ++wrong;
    }
  });
  for (uintptr_t i = 1; i <= 30'000; ++i) {
    const uintptr_t address = 0x10000 + (i % 64) * 32;
    ASSERT_TRUE(table->put(address, {i % 700, 9}));
    uintptr_t expected = 0;
    while (!handed.compare_exchange_weak(expected, address, std::memory_order_release)) {
      expected = 0;
      std::this_thread::yield();
    }
  }
  consumer.join();
  EXPECT_EQ(wrong, 0u);
}

// Pages without a block serve other parts of the heap.
TEST_P(BlockTablesWithShadow, PagesAreUsedAgain) {
  auto table = make_table();
  Block block;
  uint64_t bytes = 0;
  for (uintptr_t round = 0; round < 20; ++round) {
    const uintptr_t base = 0x7f0000000000 + (round << 24);
    for (uintptr_t i = 0; i < 20'000; ++i) ASSERT_TRUE(table->put(base + i * 64, {40, 1}));
    bytes = std::max(bytes, table->shadow_bytes());
    for (uintptr_t i = 0; i < 20'000; ++i) ASSERT_TRUE(table->take(base + i * 64, &block));
    table->give_back_empty(false);
    EXPECT_LE(table->shadow_bytes(), 21u * 4096) << "addresses of pages alone";
  }
  EXPECT_LE(bytes, (20'000u * 64 / 16384 + 21 + 64) * 4096);
}

// Threads put and take in parts of the heap that are emptied again and again, while others give
// empty pages and levels back.
TEST_P(BlockTables, MemoryIsGivenBackMeanwhile) {
  constexpr unsigned kThreads = 3;
  static ThreadSlots* slots;
  const auto made = std::make_unique<ThreadSlots>();
  slots = made.get();
  auto table = std::make_unique<BlockTable>();
  ASSERT_TRUE(table->init());
  table->use_shadow(
      GetParam(), {kRoomy.live_blocks, [](bool inside) { return slots->all_were_outside(inside); },
                   [](uint64_t) {}});
  std::atomic<uint64_t> wrong = 0;
  auto giver = std::jthread([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) table->give_back_empty(false);
  });
  run_threads(kThreads, [&](unsigned t) {
    const uint32_t number = slots->acquire(base::process_id(), base::thread_id());
    const uintptr_t base = 0x7f0000000000 + (uintptr_t{t} << 32);
    // In a page of its own, in one of a neighbour, and in the hash table.
    const auto address = [&](uintptr_t round, uintptr_t i) {
      return base + (round % 7 << 16) + i * 64;
    };
    for (uintptr_t round = 0; round < 3000; ++round) {
      for (uintptr_t i = 0; i < 300; ++i) {
        const Operation operation(slots->slot(number));
        if (!table->put(address(round, i), {round % 3 == 0 ? 600 : i, t + 1})) ++wrong;
      }
      for (uintptr_t i = 0; i < 300; ++i) {
        const Operation operation(slots->slot(number));
        Block taken;
        if (!table->take(address(round, i), &taken) || taken.stack != t + 1) ++wrong;
      }
    }
  });
  giver = {};
  EXPECT_EQ(wrong, 0u);
  table->for_each([](uintptr_t, const Block&) { FAIL() << "a block is left"; });
}

}  // namespace
}  // namespace mtrace::ledger
