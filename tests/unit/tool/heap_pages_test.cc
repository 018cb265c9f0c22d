// Pages that blocks pin, and pages of one size class, held against a count by definition on random
// heaps.
#include "model/heap/heap_pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace mtrace::test {
namespace {

using heap::HeapBlock;
using heap::HeapPages;
using heap::kHeapPage;
using heap::largest_of_class;
using heap::PagesOfSize;
using heap::PinnedPages;

// 1 to 40 pages from `begin` on, three of four in memory.
HeapPages random_heap(std::mt19937& random, uint64_t begin, uint64_t header) {
  std::vector<bool> resident(1 + random() % 40);
  for (size_t i = 0; i < resident.size(); ++i) resident[i] = random() % 4 != 0;
  return {begin, resident, header};
}

constexpr uint64_t kStart = 0x555555560000;

TEST(PinnedPages, OneBlockPinsThePagesItTouches) {
  const std::vector<HeapBlock> blocks = {{kStart + 2 * kHeapPage - 16, 100, 7, 0}};
  const PinnedPages found = pinned_pages(blocks, {{kStart, std::vector<bool>(5, true)}});
  EXPECT_EQ(found.alone, 2u);
  EXPECT_EQ(found.common, 0u);
  EXPECT_EQ(found.free, 3u);
  EXPECT_EQ(found.stacks.at(7).alone, 2u);
}

// The size of a block stands on the page in front of it.
TEST(PinnedPages, TheHeaderOfABlockCounts) {
  const std::vector<HeapBlock> blocks = {{kStart + kHeapPage, 100, 7, 0}};
  const PinnedPages found = pinned_pages(blocks, {{kStart, std::vector<bool>(3, true)}});
  EXPECT_EQ(found.alone, 2u);
}

// Other allocators than glibc's have none.
TEST(PinnedPages, WithoutHeadersABlockIsWhereItIs) {
  const std::vector<HeapBlock> blocks = {{kStart, 100, 6, 0}, {kStart + kHeapPage, 100, 7, 0}};
  const PinnedPages found = pinned_pages(blocks, {{kStart, std::vector<bool>(3, true), 0}});
  EXPECT_EQ(found.alone, 2u);
  EXPECT_EQ(found.common, 0u);
}

TEST(PinnedPages, AsByDefinition) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    std::vector<HeapPages> heaps;
    std::vector<HeapBlock> blocks;
    for (uint64_t heap = 0; heap < 3; ++heap) {
      const uint64_t begin = kStart + heap * 100 * kHeapPage;
      heaps.push_back(random_heap(random, begin, heap::kBlockHeader));
      const uint64_t end = begin + heaps.back().resident.size() * kHeapPage;
      for (uint64_t at = begin + 16; at < end;) {
        const uint64_t most = random() % 8 == 0 ? 20000 : 900;
        const uint64_t size = std::min<uint64_t>(random() % most, end - at);
        if (random() % 3 == 0) blocks.push_back({at, size, static_cast<uint32_t>(random() % 6), 0});
        at += (size + 8 + 15) / 16 * 16 + 16;
      }
    }
    std::map<uint32_t, heap::StackPages> expected;
    uint64_t alone = 0;
    uint64_t common = 0;
    uint64_t free = 0;
    for (const HeapPages& heap : heaps) {
      for (size_t page = 0; page < heap.resident.size(); ++page) {
        if (!heap.resident[page]) continue;
        const uint64_t begin = heap.begin + page * kHeapPage;
        std::set<uint32_t> stacks;
        for (const HeapBlock& block : blocks) {
          if (block.address - 8 < begin + kHeapPage &&
              block.address + std::max<uint64_t>(block.size, 1) > begin) {
            stacks.insert(block.stack);
          }
        }
        ++(stacks.empty() ? free : stacks.size() == 1 ? alone : common);
        for (const uint32_t stack : stacks) {
          heap::StackPages& pages = expected[stack];
          ++(stacks.size() == 1 ? pages.alone : pages.common);
          if (stacks.size() > 1) pages.share += 1.0 / static_cast<double>(stacks.size());
        }
      }
    }
    const PinnedPages found = pinned_pages(blocks, heaps);
    EXPECT_EQ(found.alone, alone);
    EXPECT_EQ(found.common, common);
    EXPECT_EQ(found.free, free);
    EXPECT_EQ(found.stacks.size(), expected.size());
    for (const auto& [stack, pages] : expected) {
      EXPECT_EQ(found.stacks.at(stack).alone, pages.alone);
      EXPECT_EQ(found.stacks.at(stack).common, pages.common);
      EXPECT_NEAR(found.stacks.at(stack).share, pages.share, 1e-9);
    }
  }
}

constexpr uint64_t kPagesStart = 0x7f0000000000;

TEST(PagesBySize, FourForEachPowerOfTwo) {
  const std::map<uint64_t, uint64_t> known = {
      {0, 16},    {1, 16},    {16, 16},   {17, 32},     {128, 128},   {129, 160},   {160, 160},
      {161, 192}, {256, 256}, {257, 320}, {1024, 1024}, {1025, 1280}, {4097, 5120}, {5121, 6144}};
  for (const auto& [size, largest] : known) EXPECT_EQ(largest_of_class(size), largest) << size;
  for (uint64_t size = 1; size < 100'000; size += 13) {
    EXPECT_GE(largest_of_class(size), size);
    EXPECT_EQ(largest_of_class(largest_of_class(size)), largest_of_class(size)) << size;
  }
  EXPECT_GE(largest_of_class(UINT64_MAX), UINT64_MAX);
}

TEST(PagesBySize, AsByDefinition) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<HeapPages> heaps;
    std::vector<HeapBlock> blocks;
    for (uint64_t heap = 0; heap < 3; ++heap) {
      const uint64_t begin = kPagesStart + heap * 100 * kHeapPage;
      heaps.push_back(random_heap(random, begin, 0));
      const uint64_t end = begin + heaps.back().resident.size() * kHeapPage;
      for (uint64_t at = begin; at < end;) {
        // Pages of one size mostly.
        const uint64_t most = random() % 40 == 0 ? 20000 : 16 + at / kHeapPage % 7 * 100;
        const uint64_t size = std::min<uint64_t>(1 + random() % most, end - at);
        if (random() % 3 == 0) blocks.push_back({at, size, 1, 0});
        at += size + random() % 64;
      }
    }
    std::map<uint64_t, PagesOfSize> wanted;
    for (const HeapBlock& block : blocks) {
      PagesOfSize& own = wanted[largest_of_class(block.size)];
      ++own.blocks;
      own.live += block.size;
    }
    for (const HeapPages& heap : heaps) {
      for (size_t i = 0; i < heap.resident.size(); ++i) {
        const uint64_t page = heap.begin + i * kHeapPage;
        std::set<uint64_t> classes;
        uint64_t taken = 0;
        for (const HeapBlock& block : blocks) {
          const uint64_t from = std::max(page, block.address);
          const uint64_t to = std::min(page + kHeapPage, block.address + block.size);
          if (from >= to) continue;
          classes.insert(largest_of_class(block.size));
          taken += to - from;
        }
        if (!heap.resident[i] || classes.size() != 1) continue;
        ++wanted[*classes.begin()].pages;
        wanted[*classes.begin()].taken += taken;
      }
    }
    const std::vector<PagesOfSize> found = pages_by_size(blocks, heaps);
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < found.size(); ++i) {
      const PagesOfSize& one = found[i];
      const PagesOfSize& same = wanted[one.largest];
      EXPECT_EQ(one.blocks, same.blocks) << one.largest;
      EXPECT_EQ(one.live, same.live);
      EXPECT_EQ(one.pages, same.pages);
      EXPECT_EQ(one.taken, same.taken);
      if (i != 0) {
        EXPECT_GE(found[i - 1].free(), one.free());
      }
    }
  }
}

}  // namespace
}  // namespace mtrace::test
