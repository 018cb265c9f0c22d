// Pages that blocks pin, held against a count by definition on random heaps.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "random_heap.h"
#include "view/heap/heap_pages.h"

namespace mtrace::test {
namespace {

using analyze::HeapBlock;
using analyze::HeapPages;
using analyze::kHeapPage;
using analyze::PinnedPages;

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
      heaps.push_back(random_heap(random, begin, analyze::kBlockHeader));
      const uint64_t end = begin + heaps.back().resident.size() * kHeapPage;
      for (uint64_t at = begin + 16; at < end;) {
        const uint64_t most = random() % 8 == 0 ? 20000 : 900;
        const uint64_t size = std::min<uint64_t>(random() % most, end - at);
        if (random() % 3 == 0) blocks.push_back({at, size, static_cast<uint32_t>(random() % 6), 0});
        at += (size + 8 + 15) / 16 * 16 + 16;
      }
    }
    std::map<uint32_t, analyze::StackPages> expected;
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
          analyze::StackPages& pages = expected[stack];
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

}  // namespace
}  // namespace mtrace::test
