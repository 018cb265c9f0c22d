// The lock-free stack table against Abseil's flat_hash_map.
#include "ledger/stack_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "concurrent.h"

namespace mtrace::ledger {
namespace {

using Frames = std::vector<uintptr_t>;

Stack as_stack(const Frames& frames, uint64_t hash, bool lost = false) {
  return {1, hash, frames.data(), static_cast<uint16_t>(frames.size()), 0, false, lost};
}

Frames frames_of(const StackTable& table, uint32_t index) {
  Frames frames(table.record(index).depth());
  EXPECT_EQ(table.frames_of(table.record(index), frames.data()), frames.size());
  return frames;
}

std::unique_ptr<StackTable> make_stacks() {
  auto table = std::make_unique<StackTable>();
  EXPECT_TRUE(table->init([](const StackRecord& stack) { return stack.retired == 9; }));
  return table;
}

// Frames from a small alphabet, so that many are equal; a weak hash, so that many collide. One in
// three goes on as one of few ways to the root.
Frames random_frames(std::mt19937& random) {
  Frames frames(1 + random() % 12);
  for (auto& frame : frames) frame = 0x400000 + random() % 6;
  if (random() % 3 == 0) {
    for (unsigned i = random() % 60; i > 0; --i) frames.push_back(0x500000 + i % 7);
  }
  return frames;
}

TEST(StackTable, SameAnswersAsFlatHashMap) {
  auto table = make_stacks();
  absl::flat_hash_map<Frames, uint32_t> reference;
  std::mt19937 random(7);
  for (int i = 0; i < 200'000; ++i) {
    const Frames frames = random_frames(random);
    uint64_t hash = 0;
    for (const uintptr_t frame : frames) hash = hash * 3 + frame % 5;  // below 2^20: collides
    const uint32_t index = table->intern(as_stack(frames, hash), 1);
    const auto [at, fresh] = reference.try_emplace(frames, index);
    ASSERT_EQ(at->second, index) << "equal frames, other record, or the reverse; at " << i;
    if (fresh) {
      ASSERT_EQ(frames_of(*table, index), frames);
    }
  }
  EXPECT_EQ(table->size(), reference.size() + 1);  // and the overflow record
  EXPECT_GT(reference.size(), 10'000u);
}

TEST(StackTable, WhatLiesBeyondIsThereOnce) {
  auto table = make_stacks();
  std::mt19937 random(11);
  // 2,000 stacks of up to 15 frames below one of three ways of 48 frames to the root.
  std::set<uint32_t> tails;
  for (int i = 0; i < 2000; ++i) {
    Frames frames = {static_cast<uintptr_t>(0x1000 + i)};
    for (unsigned n = random() % 14; n > 0; --n) frames.push_back(0x2000 + random() % 100);
    const uintptr_t way = 0x10000 * (1 + random() % 3);
    for (unsigned n = 0; n < 48; ++n) frames.push_back(way + n);
    const uint32_t index = table->intern(as_stack(frames, random()), 1);
    ASSERT_EQ(frames_of(*table, index), frames);
    uint32_t tail = table->record(index).tail;
    while (table->tail_at(tail).parent != 0) tail = table->tail_at(tail).parent;
    tails.insert(tail);
  }
  EXPECT_EQ(tails.size(), 3u);
  for (const uint32_t tail : tails) {
    EXPECT_EQ(table->tail_at(tail).children, 1u) << "the next eight frames are the same, too";
  }
}

// A stack of which only the inner frames are told, and the indices of the pieces beyond, is the one
// of all its frames, whether it is new or known.
TEST(StackTable, PiecesThatAreKnownStandForTheirFrames) {
  auto table = make_stacks();
  std::mt19937 random(13);
  Frames last = {1};
  uint32_t tails[format::kMaxDepth / kTailFrames] = {};
  unsigned used = 0;
  for (int i = 0; i < 20'000; ++i) {
    // The outermost frames of the last one, and others before.
    Frames frames(1 + random() % 12);
    for (auto& frame : frames) frame = 0x400000 + random() % 4;
    const size_t kept = random() % (std::min<size_t>(last.size(), 60) + 1);
    frames.insert(frames.end(), last.end() - static_cast<ptrdiff_t>(kept), last.end());
    const uint64_t hash =
        random() % 4 == 0 ? 3
                          : std::hash<std::string_view>()(std::string_view(
                                reinterpret_cast<const char*>(frames.data()), frames.size() * 8));
    Stack stack = as_stack(frames, hash);
    stack.shared = static_cast<uint8_t>(std::min(kept, last.size() - 1) / kTailFrames);
    stack.tails = tails;
    const Frames told(frames.begin(), frames.end() - stack.shared * ptrdiff_t{kTailFrames});
    stack.frames = told.data();  // nothing can be read beyond
    used += stack.shared;
    const bool told_first = random() % 2 == 0;
    const uint32_t first =
        told_first ? table->intern(stack, 1) : table->intern(as_stack(frames, hash), 1);
    const uint32_t second =
        told_first ? table->intern(as_stack(frames, hash), 1) : table->intern(stack, 1);
    ASSERT_EQ(first, second) << i;
    ASSERT_EQ(frames_of(*table, first), frames);
    table->tails_of(table->record(first), tails, stack.shared);
    last = frames;
  }
  EXPECT_GT(used, 5'000u) << "pieces";
}

TEST(StackTable, RetiresByFramesOfTheTail) {
  auto table = make_stacks();
  Frames frames(30, 0x1000);
  frames[25] = 0x5000;
  const uint32_t old = table->intern(as_stack(frames, 1), 1);
  table->retire(0x5000, 0x6000, 4);
  EXPECT_EQ(table->record(old).retired, 4u);
  const uint32_t fresh = table->intern(as_stack(frames, 1), 1);
  EXPECT_NE(fresh, old);
  EXPECT_EQ(table->record(fresh).tail, table->record(old).tail);
}

TEST(StackTable, VisitsEachRecordOnce) {
  auto table = make_stacks();
  std::set<uint32_t> made = {table->overflow()};
  std::mt19937_64 random(3);
  for (uintptr_t i = 1; i <= 50'000; ++i) {
    const Frames frames = {i};
    made.insert(table->intern(as_stack(frames, random()), 1));
  }
  std::set<uint32_t> visited;
  table->for_each([&](uint32_t index, const StackRecord&) {
    EXPECT_TRUE(visited.insert(index).second) << index;
  });
  EXPECT_EQ(visited, made);
}

TEST(StackTable, RetiredStackIsNotFoundAgain) {
  auto table = make_stacks();
  const Frames inside = {0x5000, 0x9000};
  const Frames outside = {0x4fff, 0x6000};
  const uint32_t old = table->intern(as_stack(inside, 1), 1);
  const uint32_t other = table->intern(as_stack(outside, 2), 1);
  table->retire(0x5000, 0x6000, 4);
  EXPECT_EQ(table->record(old).retired, 4u);
  EXPECT_EQ(table->intern(as_stack(outside, 2), 1), other);
  const uint32_t fresh = table->intern(as_stack(inside, 1), 1);
  EXPECT_NE(fresh, old);
  EXPECT_EQ(table->intern(as_stack(inside, 1), 1), fresh);
}

TEST(StackTable, RetiredStackWhoseModulesCameBackGoesOn) {
  auto table = make_stacks();
  const Frames frames = {0x5000, 0x9000};
  const uint32_t old = table->intern(as_stack(frames, 1), 1);
  table->retire(0x5000, 0x6000, 9);  // the epoch whose modules come back in this test
  EXPECT_EQ(table->record(old).retired, 9u);
  EXPECT_EQ(table->intern(as_stack(frames, 1), 1), old);
  EXPECT_EQ(table->record(old).retired, kInUse);
}

TEST(StackTable, CountsStacksWithLostFrames) {
  auto table = make_stacks();
  const Frames frames = {1};
  table->intern(as_stack(frames, 1, true), 1);
  table->intern(as_stack(frames, 1, true), 1);
  EXPECT_EQ(table->lost_frames(), 1u);
}

TEST(StackTable, KindsAreApart) {
  auto table = make_stacks();
  const Frames frames = {1, 2, 3};
  Stack stack = as_stack(frames, 5);
  const uint32_t heap = table->intern(stack, 1);
  stack.kind = 7;
  const uint32_t other = table->intern(stack, 1);
  EXPECT_NE(heap, other);
  EXPECT_EQ(table->intern(stack, 1), other);
  EXPECT_EQ(table->record(other).kind, 7);
}

TEST(StackTable, ThreadsHaveSetsOfTheirOwnAndTheLastShareOne) {
  auto table = make_stacks();
  const Frames frames = {1};
  StackRecord& record = table->record(table->intern(as_stack(frames, 1), 3));
  EXPECT_TRUE(table->counting(record, 3).owner);
  EXPECT_EQ(&table->counting(record, 3).set, &record.own);
  EXPECT_EQ(record.second, 0u);
  CounterSet& second = table->counting(record, 4).set;
  EXPECT_NE(&second, &record.own);
  EXPECT_TRUE(table->counting(record, 4).owner);
  EXPECT_EQ(&table->counting(record, 4).set, &second);
  EXPECT_EQ(record.others, 0u);
  constexpr uint32_t kLastOwner = 4 + format::kLedgerMostOtherSets * format::kLedgerOtherSets;
  std::set<CounterSet*> sets = {&record.own, &second};
  for (uint32_t thread = 5; thread <= kLastOwner; ++thread) {
    CounterSet& own = table->counting(record, thread).set;
    EXPECT_TRUE(sets.insert(&own).second) << thread;
    EXPECT_EQ(owner_of(own), thread);
    EXPECT_EQ(&table->set(table->later_set(record, thread)), &own);
    EXPECT_TRUE(table->counting(record, thread).owner);
    EXPECT_EQ(&table->counting(record, thread).set, &own);
  }
  CounterSet& shared = table->counting(record, kLastOwner + 1).set;
  EXPECT_TRUE(sets.insert(&shared).second);
  for (const uint32_t thread : {kLastOwner + 1, kLastOwner + 2, 0u}) {
    EXPECT_FALSE(table->counting(record, thread).owner);
    EXPECT_EQ(&table->counting(record, thread).set, &shared);
  }
  for (uint32_t thread = 3; thread <= kLastOwner + 2; ++thread) {
    const auto [set, owner] = table->counting(record, thread);
    count_allocated(set, owner, {thread, 1, 1});
  }
  EXPECT_EQ(table->read(record).allocated_blocks, kLastOwner);
  EXPECT_EQ(table->read(record).allocated_bytes, (kLastOwner + 2) * (kLastOwner + 3) / 2 - 3);
  size_t visited = 0;
  table->each_set(record, [&](const CounterSet&) { ++visited; });
  EXPECT_EQ(visited, sets.size());
}

TEST(StackTable, AThreadRemembersItsLaterSets) {
  KnownSets known = {};
  EXPECT_EQ(known.find(7), 0u);
  for (uint32_t stack = 1; stack <= 1000; ++stack) {
    known.remember(stack, stack + 5);
    ASSERT_EQ(known.find(stack), stack + 5);
  }
  unsigned kept = 0;
  for (uint32_t stack = 1; stack <= 1000; ++stack) {
    const uint32_t set = known.find(stack);
    ASSERT_TRUE(set == 0 || set == stack + 5) << stack;
    kept += set != 0;
  }
  EXPECT_GT(kept, 100u);  // of 128 places
}

TEST(StackTable, ThreadWithoutASlotNeverOwns) {
  auto table = make_stacks();
  const Frames frames = {1};
  StackRecord& record = table->record(table->intern(as_stack(frames, 1), 0));
  EXPECT_FALSE(table->counting(record, 0).owner);
  EXPECT_EQ(record.second_owner, 0u);
  EXPECT_TRUE(table->counting(record, 9).owner);
}

TEST(StackTable, ThreadsAgree) {
  constexpr unsigned kThreads = 4;
  constexpr uintptr_t kStacks = 40'000;
  auto table = make_stacks();
  std::vector<std::vector<uint32_t>> seen(kThreads, std::vector<uint32_t>(kStacks));
  run_threads(kThreads, [&](unsigned t) {
    for (uintptr_t i = 0; i < kStacks; ++i) {
      const Frames frames = {i + 1, 77};
      seen[t][i] = table->intern(as_stack(frames, (i / 3) * 0x9e3779b97f4a7c15u), t + 1);
      StackRecord& record = table->record(seen[t][i]);
      const auto [set, owner] = table->counting(record, t + 1);
      count_allocated(set, owner, {i, 1, 0});
    }
  });
  for (uintptr_t i = 0; i < kStacks; ++i) {
    for (unsigned t = 1; t < kThreads; ++t) ASSERT_EQ(seen[t][i], seen[0][i]) << i;
    const StackRecord& record = table->record(seen[0][i]);
    const Counters total = table->read(record);
    ASSERT_EQ(total.allocated_blocks, kThreads);
    ASSERT_EQ(total.allocated_bytes, kThreads * i);
  }
  EXPECT_EQ(table->size(), kStacks + 1);
}

}  // namespace
}  // namespace mtrace::ledger
