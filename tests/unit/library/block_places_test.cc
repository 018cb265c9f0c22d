// What finding a block takes, and what keeping it takes, whatever the addresses are.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ledger/block_table.h"

namespace mtrace::ledger {
namespace {

uint64_t resident_bytes() {
  unsigned long size = 0;
  unsigned long resident = 0;
  FILE* file = fopen("/proc/self/statm", "re");
  EXPECT_EQ(fscanf(file, "%lu %lu", &size, &resident), 2);
  fclose(file);
  return uint64_t{resident} * 4096;
}

// The process around a table, whose blocks it counts.
uint64_t g_live = 0;
constexpr BlockTable::Process kProcess = {[] { return g_live; }, [](bool) { return true; },
                                          [](uint64_t) {}};

// nullptr: no memory.
std::unique_ptr<BlockTable> make_places() {
  auto table = std::make_unique<BlockTable>();
  if (!table->init()) return nullptr;
  table->use_shadow(HeapShadow::Granules::kOwn, kProcess);
  return table;
}

struct Heap {
  const char* name;
  uint64_t blocks;
  uint64_t size;
  std::function<uintptr_t(uint64_t)> address;
};

// MTRACE_TEST_BLOCKS=20000000: so many blocks, and the figures are printed.
std::vector<Heap> hostile_heaps() {
  constexpr uintptr_t kBase = 0x555555560010;
  const char* asked = getenv("MTRACE_TEST_BLOCKS");
  const uint64_t blocks = asked != nullptr ? strtoull(asked, nullptr, 10) : 400'000;
  const auto stride = [](unsigned log2) {
    return [log2](uint64_t i) { return uintptr_t{0x10} + ((i + 1) << log2); };
  };
  std::vector<Heap> heaps = {
      {"chunks of 32 bytes", blocks, 24, [](uint64_t i) { return kBase + i * 32; }},
      {"one size class", blocks, 64, [](uint64_t i) { return kBase + i * 80; }},
      {"large ones side by side", blocks, 600, [](uint64_t i) { return kBase + i * 624; }},
      {"one a page", blocks / 16, 40, [](uint64_t i) { return kBase + i * 4096; }},
      {"a large one a page", blocks, 4000, [](uint64_t i) { return kBase + i * 4096; }},
      {"in 64 arenas", blocks / 4, 100,
       [](uint64_t i) { return 0x7f0000000000 + i % 64 * (64ul << 20) + i / 64 * 112; }},
      {"pairs of 32 and 1008 bytes", blocks, 600,
       [](uint64_t i) { return kBase + i / 2 * 1040 + i % 2 * 32; }},
      {"three of 48 and one of 400", blocks, 600,
       [](uint64_t i) { return kBase + i / 4 * 544 + i % 4 * 48; }},
      {"counted down", blocks, 512, [](uint64_t i) { return 0x7ffff0000000 - i * 528; }},
      // As far apart as so many can be.
      {"as wide as there is room", blocks, 1000,
       stride(46 - static_cast<unsigned>(std::bit_width(blocks)))},
      {"many at a stride of 2^16", blocks, 1000, stride(16)},
  };
  static std::set<std::string> names;
  for (unsigned log2 = 5; log2 <= 30; ++log2) {
    const char* name = names.insert("a stride of 2^" + std::to_string(log2)).first->c_str();
    // As many as the address space has, at most.
    const uint64_t room = (uint64_t{1} << 46) >> log2;
    for (const uint64_t size : {100u, 1000u}) {
      heaps.push_back({name, std::min<uint64_t>(room, 25'000), size, stride(log2)});
    }
  }
  return heaps;
}

// The tables take so much for each live block, and so much besides.
constexpr uint64_t kBytesABlock = 32;
constexpr uint64_t kBytesOfFew = 1 << 20;

// Puts all blocks of the heap, and asks what that took and what finding each takes.
void expect_few_places(const Heap& heap) {
  const uint64_t before = resident_bytes();
  const auto table = make_places();
  ASSERT_NE(table, nullptr);
  double worst = 0;
  for (g_live = 0; g_live < heap.blocks;) {
    ASSERT_TRUE(table->put(heap.address(g_live), {heap.size, 1}));
    ++g_live;
    if (g_live % 1024 != 0) continue;
    const double grown = static_cast<double>(resident_bytes()) - static_cast<double>(before);
    worst = std::max(worst, (grown - kBytesOfFew) / static_cast<double>(g_live));
  }
  EXPECT_LE(worst, kBytesABlock) << heap.name << ", " << heap.size;
  uint64_t lines = 0;
  unsigned most = 0;
  for (uint64_t i = 0; i < heap.blocks; ++i) {
    const unsigned here = table->lines_to(heap.address(i));
    lines += here;
    most = std::max(most, here);
  }
  const double grown = static_cast<double>(resident_bytes()) - static_cast<double>(before);
  const auto blocks = static_cast<double>(heap.blocks);
  // Half of the blocks stand in the newest level, a quarter in the one before, and so on: two
  // levels are looked at on average, however many there are, and in each the home line and what
  // its reach adds.
  EXPECT_LE(static_cast<double>(lines) / blocks, 6.5) << heap.name << ", " << heap.size;
  EXPECT_LE(most, 80u) << heap.name << ", " << heap.size;
  if (getenv("MTRACE_TEST_BLOCKS") != nullptr) {
    printf(
        "%-24s %10lu blocks of %4lu: %.2f lines on average, %2u at most, %.1f bytes a block, "
        "%.1f at most beyond %lu KiB\n",
        heap.name, heap.blocks, heap.size, static_cast<double>(lines) / blocks, most,
        grown / blocks, worst, kBytesOfFew / 1024);
  }
  Block block;
  for (uint64_t i = 0; i < heap.blocks; ++i) {
    ASSERT_TRUE(table->take(heap.address(i), &block)) << heap.name;
  }
  EXPECT_EQ(table->lost_blocks(), 0u);
  table->forget_all();
}

TEST(BlockPlaces, AreFewForHostileHeaps) {
  for (const Heap& heap : hostile_heaps()) expect_few_places(heap);
}

// What a heap was at its peak is not what its tables stay.
TEST(BlockPlaces, OfAHeapThatShrankAreGivenBack) {
  constexpr uintptr_t kBase = 0x555555560010;
  constexpr uint64_t kBlocks = 400'000;
  const auto table = make_places();
  ASSERT_NE(table, nullptr);
  const uint64_t before = resident_bytes();
  for (g_live = 0; g_live < kBlocks; ++g_live) {
    ASSERT_TRUE(table->put(kBase + g_live * 64, {40, 1}));
  }
  EXPECT_GT(resident_bytes() - before, kBlocks * 64 / 4);
  Block block;
  for (uint64_t i = 0; i < kBlocks; ++i) {
    if (i % 10'000 == 0) continue;
    ASSERT_TRUE(table->take(kBase + i * 64, &block));
    --g_live;
  }
  table->give_back_empty(false);
  EXPECT_LT(resident_bytes(), before + kBytesOfFew / 2);
  for (uint64_t i = 0; i < kBlocks; i += 10'000) {
    ASSERT_TRUE(table->take(kBase + i * 64, &block));
    EXPECT_EQ(block.size, 40u);
  }
  table->forget_all();
}

// So are places of the hash table, whatever of it is left.
TEST(BlockPlaces, OfLargeBlocksAreGivenBack) {
  constexpr uintptr_t kBase = 0x555555560010;
  constexpr uint64_t kBlocks = 400'000;
  const auto table = make_places();
  ASSERT_NE(table, nullptr);
  const uint64_t before = resident_bytes();
  Block block;
  for (int round = 0; round < 3; ++round) {
    for (g_live = 0; g_live < kBlocks; ++g_live) {
      ASSERT_TRUE(table->put(kBase + g_live * 4096, {2000, 1}));
    }
    EXPECT_GT(resident_bytes() - before, kBlocks * 16);
    for (uint64_t i = 0; i < kBlocks; ++i) ASSERT_TRUE(table->take(kBase + i * 4096, &block));
    g_live = 0;
    table->give_back_empty(false);
    EXPECT_LT(resident_bytes(), before + kBytesOfFew / 2) << round;
  }
}

}  // namespace
}  // namespace mtrace::ledger
