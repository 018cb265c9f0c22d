// What a program can still reach, held against heaps whose answer is known and against a search by
// definition.
#include "model/heap/reachability.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>

namespace mtrace::test {
namespace {

using heap::BlockIndex;
using heap::HeapBlock;
using heap::Piece;
using heap::Reach;
using heap::Reachability;
using heap::Roots;

// Memory of words; blocks from kHeap on, roots from kRoots on.
class Memory {
 public:
  static constexpr uint64_t kHeap = 0x555555560010;
  static constexpr uint64_t kRoots = 0x7f0000000000;

  // Returns the address of a new block.
  uint64_t add(uint64_t size) {
    const uint64_t address = next_;
    next_ += (size + 8 + 15) / 16 * 16 + 16;
    blocks_.push_back({address, size, 1, 0});
    return address;
  }
  void point(uint64_t from, uint64_t word) { words_[from] = word; }
  void root(uint64_t word) { point(kRoots + 8 * roots_++, word); }

  Reachability look() {
    Roots roots;
    roots.memory.push_back({kRoots, 8 * roots_});
    roots.is_constant = [&](uint64_t address) { return constants_.contains(address); };
    return look(roots);
  }
  Reachability look(const Roots& roots) {
    BlockIndex index(blocks_);
    return heap::find_reachable(blocks_, index, roots,
                                [&](const std::vector<Piece>& pieces, char* to) {
                                  for (const Piece& piece : pieces) {
                                    for (uint64_t at = 0; at < piece.size; at += 8) {
                                      const uint64_t word = get(piece.address + at);
                                      std::memcpy(to, &word, sizeof word);
                                      to += sizeof word;
                                    }
                                  }
                                });
  }
  uint64_t get(uint64_t address) const {
    const auto at = words_.find(address);
    return at == words_.end() ? 0 : at->second;
  }
  const std::vector<HeapBlock>& blocks() const { return blocks_; }
  std::set<uint64_t>& constants() { return constants_; }

 private:
  uint64_t next_ = kHeap;
  uint64_t roots_ = 0;
  std::vector<HeapBlock> blocks_;
  std::map<uint64_t, uint64_t> words_;
  std::set<uint64_t> constants_;
};

std::vector<Reach> of(const Reachability& found) { return found.of; }

constexpr Reach kDefinite = Reach::kDefinite;
constexpr Reach kIndirect = Reach::kIndirect;
constexpr Reach kPossible = Reach::kPossible;
constexpr Reach kReachable = Reach::kReachable;

// malloc points to the free chunk behind a block, whose first word is the last of the block. The
// same pointer in a variable of the program counts.
TEST(Reachability, TheChunkBehindABlockIsNoPointerToIt) {
  for (const bool of_malloc : {true, false}) {
    for (const uint64_t size : {24, 102, 1000}) {
      Memory memory;
      const uint64_t block = memory.add(size);
      memory.root(block + (size + 8 + 15) / 16 * 16 - 16);
      Roots roots;
      roots.memory.push_back({Memory::kRoots, 8});
      if (of_malloc) roots.allocator = roots.memory;
      EXPECT_EQ(of(memory.look(roots)), (std::vector<Reach>{of_malloc ? kDefinite : kPossible}));
      memory.root(block);
      roots.memory.push_back({Memory::kRoots + 8, 8});
      EXPECT_EQ(of(memory.look(roots)), (std::vector<Reach>{kReachable}));
    }
  }
}

TEST(Reachability, OfAChain) {
  Memory memory;
  const uint64_t a = memory.add(64);
  const uint64_t b = memory.add(64);
  memory.add(64);
  memory.root(a);
  memory.point(a + 56, b);
  const Reachability found = memory.look();
  EXPECT_EQ(of(found), (std::vector<Reach>{kReachable, kReachable, kDefinite}));
  EXPECT_EQ(found.via[1], a + 56);
  EXPECT_EQ(found.via[0], Memory::kRoots);
}

// Large blocks are read together, small ones at once, of the same level and in any order.
TEST(Reachability, OfLargeAndSmallBlocksTogether) {
  Memory memory;
  std::vector<uint64_t> holders;
  std::vector<uint64_t> held;
  for (const uint64_t size : {64, 40'000, 64, 300'000, 64, 40'000}) {
    holders.push_back(memory.add(size));
    memory.root(holders.back());
    held.push_back(memory.add(48));
    memory.point(holders.back() + size - 8, held.back());
  }
  const Reachability found = memory.look();
  EXPECT_EQ(of(found), std::vector<Reach>(12, kReachable));
}

// More than are followed one by one, in an order that is not that of addresses.
TEST(Reachability, OfWideAndLongGraphs) {
  constexpr size_t kWide = 20'000;
  Memory memory;
  const uint64_t table = memory.add(kWide * 8);
  std::vector<uint64_t> blocks;
  for (size_t i = 0; i < kWide; ++i) blocks.push_back(memory.add(24));
  for (size_t i = 0; i < kWide; ++i) memory.point(table + 8 * (i * 7919 % kWide), blocks[i]);
  // A list that leads to and fro over pages hangs on the last of them, and ends in a lost one.
  uint64_t last = blocks[kWide - 1];
  for (size_t i = 0; i < 1000; ++i) {
    const uint64_t node = memory.add(i % 3 == 0 ? 5000 : 32);
    memory.point(last + 16, node);
    last = node;
  }
  memory.add(32);
  memory.root(table);
  const Reachability found = memory.look();
  std::vector<Reach> expected(memory.blocks().size(), kReachable);
  expected.back() = kDefinite;
  EXPECT_EQ(of(found), expected);
}

TEST(Reachability, AWordThatDoesNotFitInABlockIsNoPointer) {
  Memory memory;
  const uint64_t a = memory.add(60);
  const uint64_t b = memory.add(16);
  memory.root(a);
  memory.point(a + 56, b);
  EXPECT_EQ(of(memory.look()), (std::vector<Reach>{kReachable, kDefinite}));
}

TEST(Reachability, ABlockOfNoBytesIsFoundByItsAddress) {
  Memory memory;
  memory.root(memory.add(0));
  memory.root(memory.add(16) + 16);  // behind its end
  EXPECT_EQ(of(memory.look()), (std::vector<Reach>{kReachable, kDefinite}));
}

TEST(Reachability, WhatLostBlocksPointToIsLostIndirectly) {
  Memory memory;
  const uint64_t a = memory.add(32);
  const uint64_t b = memory.add(32);
  const uint64_t c = memory.add(32);
  memory.point(a, b);
  memory.point(b + 8, c + 16);  // into the middle: lost all the same
  const Reachability found = memory.look();
  EXPECT_EQ(of(found), (std::vector<Reach>{kDefinite, kIndirect, kIndirect}));
  for (uint32_t block = 0; block < 3; ++block) EXPECT_EQ(found.owner(block), 0u) << block;
}

TEST(Reachability, OfACircleOneBlockIsDefinitelyLost) {
  Memory memory;
  const uint64_t a = memory.add(32);
  const uint64_t b = memory.add(32);
  const uint64_t c = memory.add(32);
  const uint64_t alone = memory.add(32);
  memory.point(a, b);
  memory.point(b, c);
  memory.point(c, a);
  memory.point(alone, alone);
  EXPECT_EQ(of(memory.look()), (std::vector<Reach>{kDefinite, kIndirect, kIndirect, kDefinite}));
}

TEST(Reachability, APointerIntoTheMiddleMakesItAndWhatItHoldsPossiblyLost) {
  Memory memory;
  const uint64_t a = memory.add(64);
  const uint64_t b = memory.add(64);
  const uint64_t c = memory.add(64);
  memory.root(a + 24);
  memory.point(a, b);
  memory.point(b, c);
  memory.root(c);
  EXPECT_EQ(of(memory.look()), (std::vector<Reach>{kPossible, kPossible, kReachable}));
}

TEST(Reachability, UsualPointersIntoTheMiddleAreEnough) {
  Memory memory;
  const uint64_t array = memory.add(8 + 10 * 24);
  memory.point(array, 10);
  memory.root(array + 8);
  const uint64_t odd = memory.add(8 + 10 * 24);
  memory.point(odd, 7);
  memory.root(odd + 8);
  const uint64_t text = memory.add(24 + 31);
  memory.point(text, 12);
  memory.point(text + 8, 30);
  memory.root(text + 24);
  const uint64_t bases = memory.add(64);
  memory.constants() = {0x7fff1000, 0x7fff1040};
  memory.point(bases, 0x7fff1000);
  memory.point(bases + 32, 0x7fff1040);
  memory.root(bases + 32);
  const uint64_t plain = memory.add(64);
  memory.point(plain, 0x7fff1000);
  memory.root(plain + 32);
  EXPECT_EQ(of(memory.look()),
            (std::vector<Reach>{kReachable, kPossible, kReachable, kReachable, kPossible}));
}

TEST(Reachability, AnXorListIsPossiblyLost) {
  Memory memory;
  std::vector<uint64_t> nodes;
  for (int i = 0; i < 50; ++i) nodes.push_back(memory.add(48));
  for (size_t i = 0; i < nodes.size(); ++i) {
    const uint64_t before = i > 0 ? nodes[i - 1] : 0;
    const uint64_t next = i + 1 < nodes.size() ? nodes[i + 1] : 0;
    memory.point(nodes[i] + 8, before ^ next);
  }
  memory.root(nodes[0]);
  std::vector<Reach> expected(nodes.size(), kPossible);
  expected[0] = expected[1] = kReachable;
  EXPECT_EQ(of(memory.look()), expected);
}

// A number in a block that is reached, XORed with the address of the block before, often gives that
// of another block: alone it is no link.
TEST(Reachability, ANumberIsNoXorLink) {
  Memory memory;
  const uint64_t a = memory.add(48);
  const uint64_t b = memory.add(48);
  const uint64_t lost = memory.add(48);
  memory.root(a);
  memory.point(a, b);
  memory.point(b + 8, a ^ lost);
  EXPECT_EQ(of(memory.look()), (std::vector<Reach>{kReachable, kReachable, kDefinite}));
}

TEST(Reachability, TagsAreLeftOut) {
  Memory memory;
  const uint64_t a = memory.add(64);
  memory.add(64);
  Roots roots;
  roots.words = {a | 3};
  EXPECT_EQ(of(memory.look(roots))[0], kPossible);
  roots.tag_bits = 2;
  EXPECT_EQ(of(memory.look(roots))[0], kReachable);
}

TEST(Reachability, PointersIntoTheMiddleCountOnRequest) {
  Memory memory;
  const uint64_t a = memory.add(64);
  const uint64_t b = memory.add(64);
  Roots roots;
  roots.words = {a + 20};
  memory.point(a, b + 8);
  EXPECT_EQ(of(memory.look(roots)), (std::vector<Reach>{kPossible, kPossible}));
  roots.inner_counts = true;
  EXPECT_EQ(of(memory.look(roots)), (std::vector<Reach>{kReachable, kReachable}));
}

// Aligned memory that keeps the address of its block, in the word before it or in its first two.
TEST(Reachability, AnAlignedPartThatKnowsItsBlockHoldsIt) {
  for (const int place : {-16, -8, 0, 8, 16}) {
    Memory memory;
    const uint64_t block = memory.add(256);
    const uint64_t aligned = block + 64;
    memory.point(aligned + static_cast<uint64_t>(place), block);
    Roots roots;
    roots.words = {aligned};
    const bool near = place >= -8 && place <= 8;
    EXPECT_EQ(of(memory.look(roots))[0], near ? kReachable : kPossible) << place;
  }
}

TEST(Reachability, RegistersAndHeldBlocksAreRoots) {
  Memory memory;
  const uint64_t a = memory.add(64);
  const uint64_t b = memory.add(64);
  memory.add(64);
  Roots roots;
  roots.words = {a};
  roots.held = {b + 40};
  const Reachability found = memory.look(roots);
  EXPECT_EQ(of(found), (std::vector<Reach>{kReachable, kReachable, kDefinite}));
  EXPECT_EQ(found.via[0], Reachability::kRegister);
  EXPECT_EQ(found.via[1], Reachability::kHeld);
}

// The blocks of a piece of roots are no roots themselves.
TEST(Reachability, BlocksInRootsAreSkipped) {
  Memory memory;
  const uint64_t a = memory.add(64);
  const uint64_t b = memory.add(64);
  const uint64_t c = memory.add(64);
  memory.point(a, b);
  memory.point(a + 64, c);  // between a and b
  Roots roots;
  roots.memory = {{Memory::kHeap - 16, 4096}};
  EXPECT_EQ(of(memory.look(roots)), (std::vector<Reach>{kDefinite, kIndirect, kReachable}));
}

// By the words of the definition, without regard to time.
struct Truth {
  std::set<size_t> reachable;
  std::set<size_t> possible;
  size_t definite = 0;  // lost components that no other lost component points to
};

Truth truth_of(const std::vector<std::set<size_t>>& exact,
               const std::vector<std::set<size_t>>& inner, const std::set<size_t>& roots,
               const std::set<size_t>& inner_roots) {
  const size_t blocks = exact.size();
  const auto closure = [&](std::set<size_t> from, bool any) {
    std::vector<size_t> left(from.begin(), from.end());
    while (!left.empty()) {
      const size_t block = left.back();
      left.pop_back();
      for (const size_t to : exact[block]) {
        if (from.insert(to).second) left.push_back(to);
      }
      if (!any) continue;
      for (const size_t to : inner[block]) {
        if (from.insert(to).second) left.push_back(to);
      }
    }
    return from;
  };
  Truth truth;
  truth.reachable = closure(roots, false);
  std::set<size_t> both = roots;
  both.insert(inner_roots.begin(), inner_roots.end());
  truth.possible = closure(both, true);
  std::vector<std::set<size_t>> reach(blocks);
  for (size_t i = 0; i < blocks; ++i) reach[i] = closure({i}, true);
  // A component is named by its least member; it is a first one if only members reach it.
  for (size_t i = 0; i < blocks; ++i) {
    if (truth.possible.contains(i)) continue;
    bool least = true;
    bool first = true;
    for (size_t j = 0; j < blocks; ++j) {
      if (j == i || truth.possible.contains(j) || !reach[j].contains(i)) continue;
      if (!reach[i].contains(j)) first = false;
      if (reach[i].contains(j) && j < i) least = false;
    }
    truth.definite += first && least;
  }
  return truth;
}

TEST(Reachability, OfRandomHeaps) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 draw(seed);
    const auto below = [&](uint64_t bound) { return draw() % bound; };
    Memory memory;
    const size_t blocks = 1 + below(60);
    std::vector<uint64_t> address;
    for (size_t i = 0; i < blocks; ++i) address.push_back(memory.add(16 + 8 * below(20)));
    std::vector<std::set<size_t>> exact(blocks);
    std::vector<std::set<size_t>> inner(blocks);
    std::set<size_t> roots;
    std::set<size_t> inner_roots;
    const uint64_t share = 1 + below(6);  // of words that are pointers
    for (size_t i = 0; i < blocks; ++i) {
      const uint64_t size = memory.blocks()[i].size;
      for (uint64_t word = 1; word < size / 8; ++word) {
        if (below(10 * share) >= 3) continue;
        const size_t to = below(blocks);
        const bool middle = below(5) == 0;
        memory.point(address[i] + 8 * word, address[to] + (middle ? 9 : 0));
        (middle ? inner : exact)[i].insert(to);
      }
    }
    for (uint64_t i = below(4); i-- > 0;) {
      const size_t to = below(blocks);
      const bool middle = below(4) == 0;
      memory.root(address[to] + (middle ? 9 : 0));
      (middle ? inner_roots : roots).insert(to);
    }
    const Truth truth = truth_of(exact, inner, roots, inner_roots);
    const Reachability found = memory.look();
    size_t definite = 0;
    for (size_t i = 0; i < blocks; ++i) {
      EXPECT_EQ(found.of[i] == kReachable, truth.reachable.contains(i)) << seed << ", " << i;
      EXPECT_EQ(found.of[i] <= kIndirect, !truth.possible.contains(i)) << seed << ", " << i;
      definite += found.of[i] == kDefinite;
      if (found.of[i] == kIndirect) {
        EXPECT_EQ(found.of[found.owner(i)], kDefinite) << seed;
      }
    }
    EXPECT_EQ(definite, truth.definite) << seed;
  }
}

// Blocks of many sizes, some of which reach over many granules of the index, with gaps.
std::vector<HeapBlock> random_blocks() {
  std::mt19937_64 draw(7);
  std::vector<HeapBlock> blocks;
  uint64_t at = Memory::kHeap;
  for (int i = 0; i < 2000; ++i) {
    const uint64_t size = i % 100 == 0 ? 300'000 : draw() % 200;
    blocks.push_back({at, size, 1, 0});
    at += (size / 16 + 1 + draw() % 3) * 16;
    if (i % 500 == 0) at += uint64_t{3} << 30;
  }
  return blocks;
}

TEST(BlockIndex, FindsEachByteOfBlocksAndNoOther) {
  const std::vector<HeapBlock> blocks = random_blocks();
  const BlockIndex index(blocks);
  for (size_t i = 0; i < blocks.size(); ++i) {
    const uint64_t size = std::max<uint64_t>(blocks[i].size, 1);
    for (const uint64_t offset : {uint64_t{0}, size / 2, size - 1}) {
      ASSERT_EQ(index.find(blocks[i].address + offset), i);
    }
    ASSERT_EQ(index.find(blocks[i].address + size), BlockIndex::kNone);
    ASSERT_EQ(index.find(blocks[i].address - 1), BlockIndex::kNone);
  }
  EXPECT_EQ(index.find(0), BlockIndex::kNone);
  EXPECT_EQ(index.find(~uint64_t{0}), BlockIndex::kNone);
}

TEST(BlockIndex, ABlockOfTebibytesTakesNoMemoryInProportion) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  const uint64_t large = 5 * kGiB + 4096 - 16;
  const std::vector<HeapBlock> blocks = {
      {large - 64, 64, 1, 0}, {large, 2048 * kGiB, 1, 0}, {large + 2048 * kGiB, 32, 1, 0}};
  const BlockIndex index(blocks);  // 4 GiB, if each part of 1 GiB had a table of its own
  EXPECT_EQ(index.find(large - 1), 0u);
  for (uint64_t at = 0; at < 2048; ++at) {
    for (const uint64_t offset : {uint64_t{0}, kGiB - 4096 + 15, kGiB - 4096 + 16, kGiB - 1}) {
      ASSERT_EQ(index.find(large + at * kGiB + offset), 1u) << at << " " << offset;
    }
  }
  EXPECT_EQ(index.find(large + 2048 * kGiB), 2u);
  EXPECT_EQ(index.find(large + 2048 * kGiB + 32), BlockIndex::kNone);
}

// Every third block is not done: what is settled must hold none of these, and find() does not mind.
TEST(BlockIndex, SettlesNoRangeWithABlockThatIsNotDone) {
  const std::vector<HeapBlock> blocks = random_blocks();
  BlockIndex index(blocks);
  const auto is_done = [](size_t block) { return block / 40 % 3 != 0; };
  size_t settled = 0;
  for (const HeapBlock& block : blocks) index.settle(block.address, is_done);
  for (size_t i = 0; i < blocks.size(); ++i) {
    ASSERT_EQ(index.find(blocks[i].address), i);
    const size_t open = index.find_unsettled(blocks[i].address);
    if (!is_done(i)) {
      ASSERT_EQ(open, i);
    }
    settled += open == BlockIndex::kNone;
  }
  EXPECT_GT(settled, blocks.size() / 2);
}

TEST(PointerBatch, FindsWhatTheIndexFindsInTheSameOrder) {
  const std::vector<HeapBlock> blocks = random_blocks();
  BlockIndex index(blocks);
  std::mt19937_64 draw(8);
  std::vector<uint64_t> seen(blocks.size());
  heap::PointerBatch batch(index);
  batch.expect(seen);
  using Found = std::vector<std::pair<uint64_t, size_t>>;
  Found expected;
  Found found;
  const auto visit = [&](uint64_t address, uint64_t via, size_t block) {
    ASSERT_EQ(index.find(address), block);
    found.emplace_back(via, block);
    // In the middle of a batch.
    if (++seen[block] == 2) index.settle(address, [&](size_t one) { return seen[one] > 1; });
  };
  for (uint64_t i = 0; i < 50'000; ++i) {
    const HeapBlock& near = blocks[draw() % blocks.size()];
    const uint64_t address = near.address + draw() % (near.size + 64);
    if (index.find_unsettled(address) != BlockIndex::kNone) {
      expected.emplace_back(i, index.find(address));
    }
    batch.add(address, i, visit);
    if (i % 1000 == 999) batch.finish(visit);
  }
  // Those of a range that is settled while they wait may be found or not.
  size_t at = 0;
  for (const auto& one : expected) at += at < found.size() && found[at] == one;
  EXPECT_EQ(at, found.size());
  EXPECT_GT(found.size(), blocks.size());
}

}  // namespace
}  // namespace mtrace::test
