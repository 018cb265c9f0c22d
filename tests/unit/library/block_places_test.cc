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

struct Heap {
  const char* name;
  uint64_t blocks;
  uint64_t size;
  std::function<uintptr_t(uint64_t)> address;
};

std::vector<Heap> hostile_heaps() {
  constexpr uintptr_t kBase = 0x555555560010;
  constexpr uint64_t kMany = 100'000;
  std::vector<Heap> heaps = {
      {"chunks of 32 bytes", kMany, 24, [](uint64_t i) { return kBase + i * 32; }},
      {"one size class", kMany, 64, [](uint64_t i) { return kBase + i * 80; }},
      {"large ones side by side", kMany, 600, [](uint64_t i) { return kBase + i * 624; }},
      {"one a page", kMany / 4, 40, [](uint64_t i) { return kBase + i * 4096; }},
      {"a large one a page", kMany, 4000, [](uint64_t i) { return kBase + i * 4096; }},
      {"in 64 arenas", kMany, 100,
       [](uint64_t i) { return 0x7f0000000000 + i % 64 * (64ul << 20) + i / 64 * 112; }},
      {"counted down", kMany, 512, [](uint64_t i) { return 0x7ffff0000000 - i * 528; }},
  };
  static std::set<std::string> names;
  for (unsigned log2 = 5; log2 <= 30; ++log2) {
    const char* name = names.insert("a stride of 2^" + std::to_string(log2)).first->c_str();
    // As many as the address space has, at most; of the small ones a page of shadow each.
    const uint64_t room = (uint64_t{1} << 46) >> log2;
    for (const uint64_t size : {100u, 1000u}) {
      const uint64_t most = size == 1000 ? kMany / 4 : log2 < 20 ? 10'000 : 300;
      heaps.push_back({name, std::min(room, most), size,
                       [log2](uint64_t i) { return uintptr_t{0x10} + ((i + 1) << log2); }});
    }
  }
  return heaps;
}

// Puts all blocks of the heap, and asks what that took and what finding each takes.
void expect_few_places(const Heap& heap) {
  std::vector<uintptr_t> pages;  // of the shadow: each for 16 KiB of heap
  pages.resize(heap.size < HeapShadow::kSmall ? heap.blocks : 0);
  pages.clear();
  const uint64_t before = resident_bytes();
  auto table = std::make_unique<BlockTable>();
  ASSERT_TRUE(table->init());
  table->use_shadow(HeapShadow::Granules::kOwn);
  uint64_t middles = 0;
  for (uint64_t i = 0; i < heap.blocks; ++i) {
    ASSERT_TRUE(table->put(heap.address(i), {heap.size, 1}));
    if (heap.size < HeapShadow::kSmall) pages.push_back(heap.address(i) >> 14);
  }
  std::sort(pages.begin(), pages.end());
  pages.erase(std::unique(pages.begin(), pages.end()), pages.end());
  // A page of addresses of leaves for 512 MiB.
  uintptr_t last = 0;
  for (const uintptr_t page : pages) {
    middles += page >> 15 != last >> 15;
    last = page;
  }
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
  EXPECT_LE(static_cast<double>(lines) / blocks, 5.5) << heap.name << ", " << heap.size;
  EXPECT_LE(most, 80u) << heap.name << ", " << heap.size;
  // The shadow: its pages, and few more. The hash table: 64 bytes a block.
  const double shadow = static_cast<double>(pages.size() + middles) * 4096;
  const double hash = heap.size < HeapShadow::kSmall ? 0 : blocks * 64;
  EXPECT_LE(grown, shadow + hash + 512 * 1024) << heap.name << ", " << heap.size;
  if (getenv("MTRACE_TEST_BLOCKS") != nullptr) {
    printf("%-24s %10lu blocks of %4lu: %.2f lines on average, %2u at most, %.1f bytes a block\n",
           heap.name, heap.blocks, heap.size, static_cast<double>(lines) / blocks, most,
           grown / blocks);
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

// MTRACE_TEST_BLOCKS=20000000: so many blocks, and the figures are printed.
TEST(BlockPlaces, AreFewForMillions) {
  constexpr uintptr_t kBase = 0x555555560010;
  const char* asked = getenv("MTRACE_TEST_BLOCKS");
  const uint64_t blocks = asked != nullptr ? strtoull(asked, nullptr, 10) : 400'000;
  const auto stride = [](unsigned log2) {
    return [log2](uint64_t i) { return uintptr_t{0x10} + ((i + 1) << log2); };
  };
  expect_few_places({"one size class", blocks, 64, [](uint64_t i) { return kBase + i * 80; }});
  expect_few_places({"side by side", blocks, 600, [](uint64_t i) { return kBase + i * 624; }});
  expect_few_places({"a large one a page", blocks, 1000, stride(12)});
  expect_few_places({"a stride of 2^16", blocks, 1000, stride(16)});
  // As far apart as so many can be.
  const unsigned widest = 46 - static_cast<unsigned>(std::bit_width(blocks));
  expect_few_places({"as wide as there is room", blocks, 1000, stride(widest)});
}

// What a heap was at its peak is not what its shadow stays.
TEST(BlockPlaces, OfAHeapThatShrankAreGivenBack) {
  constexpr uintptr_t kBase = 0x555555560010;
  constexpr uint64_t kBlocks = 400'000;
  auto table = std::make_unique<BlockTable>();
  ASSERT_TRUE(table->init());
  table->use_shadow(HeapShadow::Granules::kOwn);
  const uint64_t before = resident_bytes();
  for (uint64_t i = 0; i < kBlocks; ++i) ASSERT_TRUE(table->put(kBase + i * 64, {40, 1}));
  const uint64_t peak = resident_bytes();
  EXPECT_GT(peak - before, kBlocks * 64 / 4);
  Block block;
  for (uint64_t i = 0; i < kBlocks; ++i) {
    if (i % 10'000 == 0) continue;
    ASSERT_TRUE(table->take(kBase + i * 64, &block));
  }
  table->give_back_zeros();
  EXPECT_LT(resident_bytes(), before + (peak - before) / 2);
  for (uint64_t i = 0; i < kBlocks; i += 10'000) {
    ASSERT_TRUE(table->take(kBase + i * 64, &block));
    EXPECT_EQ(block.size, 40u);
  }
  table->forget_all();
}

}  // namespace
}  // namespace mtrace::ledger
