// Which blocks have outlived a time, told from looks at all live blocks.
#include "model/heap/expiry.h"

#include <gtest/gtest.h>

namespace mtrace::test {
namespace {

using heap::Expiry;
using heap::ExpiryNews;
using heap::live_time;
using heap::LiveTime;
using ledger::LedgerBlock;
using ledger::LedgerStackState;

std::vector<ExpiryNews> look(Expiry& expiry, uint64_t now, const std::vector<LedgerBlock>& blocks) {
  expiry.begin();
  for (const LedgerBlock& block : blocks) expiry.see(block, now);
  return expiry.end(now);
}

constexpr LedgerBlock kOld = {0x100, 10, 1, 99};     // from before
constexpr LedgerBlock kFirst = {0x200, 20, 1, 100};  // address, size, stack, birth
constexpr LedgerBlock kSecond = {0x300, 30, 2, 105};

TEST(Expiry, CountsOnceInTheSecondLookThatFindsItOldEnough) {
  Expiry expiry(100, 50, 0);
  EXPECT_TRUE(look(expiry, 149, {kOld, kFirst, kSecond}).empty());
  EXPECT_TRUE(look(expiry, 150, {kOld, kFirst, kSecond}).empty());
  const auto news = look(expiry, 151, {kOld, kFirst, kSecond});
  ASSERT_EQ(news.size(), 1u);
  EXPECT_EQ(news[0].stack->index, 1u);
  EXPECT_EQ(news[0].expired, 1u);
  EXPECT_TRUE(news[0].first);
  EXPECT_EQ(expiry.oldest().at(1), 100u);
  EXPECT_TRUE(look(expiry, 152, {kOld, kFirst}).empty()) << "it is known, the other one was freed";
  EXPECT_EQ(expiry.expired(), 1u);
}

TEST(Expiry, CountsWhatIsFreedAfterwards) {
  Expiry expiry(100, 50, 0);
  for (const uint64_t now : {155, 156}) look(expiry, now, {kFirst, kSecond});
  const auto news = look(expiry, 200, {kSecond});
  ASSERT_EQ(news.size(), 1u);
  EXPECT_EQ(news[0].freed, 1u);
  EXPECT_FALSE(news[0].first);
  EXPECT_EQ(news[0].stack->may_leak(), 0u);
  EXPECT_EQ(news[0].stack->longest, 100u);
  EXPECT_EQ(expiry.oldest().size(), 1u);
  EXPECT_EQ(expiry.oldest().at(2), 105u);
  EXPECT_EQ(expiry.stacks().size(), 2u);
}

// Another block at the same address: the first was freed, and the second is young.
TEST(Expiry, AnAddressIsUsedAgain) {
  Expiry expiry(100, 50, 0);
  for (const uint64_t now : {155, 156}) look(expiry, now, {kFirst});
  const LedgerBlock again = {kFirst.address, kFirst.size, 2, 160};
  auto news = look(expiry, 161, {again});
  ASSERT_EQ(news.size(), 1u);
  EXPECT_EQ(news[0].stack->index, 1u);
  EXPECT_EQ(news[0].freed, 1u);
  look(expiry, 220, {again});
  news = look(expiry, 221, {again});
  ASSERT_EQ(news.size(), 1u);
  EXPECT_EQ(news[0].stack->index, 2u);
  EXPECT_EQ(news[0].expired, 1u);
}

// A stack that goes on to leak is not told of at each look.
TEST(Expiry, NewsWhenTheNumberHasDoubled) {
  constexpr uint64_t kBlocks = 1000;
  Expiry expiry(100, 50, 0, heap::Pace::kDoubling);
  std::vector<LedgerBlock> blocks;
  std::vector<uint64_t> told;
  uint64_t sum = 0;
  for (uint64_t i = 0; i <= kBlocks; ++i) {
    for (const ExpiryNews& news : look(expiry, 1000 + i, blocks)) {
      EXPECT_EQ(news.first, told.empty());
      sum += news.expired;
      told.push_back(sum);
    }
    blocks.push_back({0x1000 + 16 * i, 10, 1, 100});
  }
  EXPECT_EQ(told, (std::vector<uint64_t>{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}));
  EXPECT_EQ(expiry.expired(), kBlocks - 1) << "the last one was seen once";
  // What is freed counts, too; and a stack that is muted is told of at once.
  Expiry muting(100, 50, 3, heap::Pace::kDoubling);
  for (const uint64_t now : {1000, 1001}) look(muting, now, blocks);
  blocks.resize(blocks.size() - 2);
  EXPECT_TRUE(look(muting, 1002, blocks).empty());
  blocks.pop_back();
  const auto news = look(muting, 1003, blocks);
  ASSERT_EQ(news.size(), 1u);
  EXPECT_EQ(news[0].freed, 3u);
  EXPECT_TRUE(news[0].muted);
}

// What was read while a slot changed, address of one block and stack of another, does not last.
TEST(Expiry, WhatIsSeenOnceIsNothing) {
  Expiry expiry(100, 50, 0);
  look(expiry, 160, {kFirst});
  EXPECT_TRUE(look(expiry, 161, {{kFirst.address, 30, 2, kFirst.birth}}).empty());
  EXPECT_TRUE(look(expiry, 162, {kFirst}).empty());
  EXPECT_EQ(look(expiry, 163, {kFirst}).size(), 1u);
  EXPECT_EQ(expiry.stacks().size(), 1u);
}

TEST(Expiry, MutesAStackThatFreesItsBlocks) {
  Expiry expiry(100, 50, 2);
  const LedgerBlock other = {0x400, 20, 1, 101};
  for (const uint64_t now : {160, 161}) look(expiry, now, {kFirst, other});
  EXPECT_FALSE(look(expiry, 170, {other})[0].muted);
  const auto news = look(expiry, 180, {});
  ASSERT_EQ(news.size(), 1u);
  EXPECT_TRUE(news[0].muted);
  EXPECT_TRUE(news[0].stack->muted);
  EXPECT_EQ(news[0].stack->longest, 79u);
}

// Stacks 1 and 2 are of one function, 3 of another.
size_t function_of(uint32_t stack) { return stack == 3 ? 2 : 1; }

std::vector<heap::ExpiryGroupNews> look(Expiry& expiry, heap::ExpiryGroups& groups, uint64_t now,
                                        const std::vector<LedgerBlock>& blocks) {
  const std::vector<ExpiryNews> news = look(expiry, now, blocks);
  return groups.add(news, expiry.stacks(), function_of);
}

TEST(ExpiryGroups, AddUpTheStacksOfAFunction) {
  Expiry expiry(100, 50, 0);
  heap::ExpiryGroups groups;
  constexpr LedgerBlock kThird = {0x400, 1000, 3, 106};
  look(expiry, 160, {kFirst, kSecond, kThird});
  auto news = look(expiry, groups, 161, {kFirst, kSecond, kThird});
  ASSERT_EQ(news.size(), 2u);
  EXPECT_EQ(news[0].group.group, 1u);
  EXPECT_EQ(news[0].expired, 2u);
  EXPECT_EQ(news[0].group.stacks.size(), 2u);
  EXPECT_EQ(news[0].group.sum.expired_bytes, 50u);
  EXPECT_EQ(news[1].group.group, 2u);
  EXPECT_EQ(news[1].group.sum.may_leak(), 1u);
  news = look(expiry, groups, 170, {kSecond, kThird});
  EXPECT_TRUE(news.empty()) << "one change where two were told";
  news = look(expiry, groups, 171, {kThird});
  ASSERT_EQ(news.size(), 1u);
  EXPECT_EQ(news[0].freed, 2u);
  EXPECT_EQ(news[0].group.sum.may_leak(), 0u);
  // The largest leak first; all groups add up to all stacks.
  const auto sums = heap::ExpiryGroups::sums(expiry.stacks(), function_of);
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums[0].group, 2u);
  EXPECT_EQ(sums[0].sum.expired + sums[1].sum.expired, expiry.expired());
}

TEST(ExpiryGroups, ATooShortTimeIsToldOfOnce) {
  Expiry expiry(100, 50, 1);
  heap::ExpiryGroups groups;
  look(expiry, 155, {kFirst});
  look(expiry, groups, 156, {kFirst});
  auto news = look(expiry, groups, 200, {});
  ASSERT_EQ(news.size(), 1u);
  EXPECT_TRUE(news[0].muted);
  EXPECT_EQ(news[0].mute_longest, 100u);
  EXPECT_TRUE(news[0].group.sum.muted);
  const LedgerBlock again = {0x500, 20, 1, 300};
  look(expiry, 360, {again});
  EXPECT_TRUE(look(expiry, groups, 361, {again}).empty());
}

TEST(LiveTime, OfSeveralStacks) {
  heap::LiveTime sum;
  heap::add(sum, {0, 0, std::nullopt, std::nullopt});  // nothing freed says nothing
  heap::add(sum, {3, 10, {{5, true}}, {{20, false}}});
  heap::add(sum, {1, 50, {{7, false}}, {{50, true}}});
  EXPECT_EQ(sum.frees, 4u);
  EXPECT_EQ(sum.mean, 20u);
  EXPECT_EQ(sum.least->ticks, 5u);
  EXPECT_TRUE(sum.least->exact);
  EXPECT_EQ(sum.most->ticks, 50u);
  EXPECT_TRUE(sum.most->exact);
  heap::add(sum, {1, 20, std::nullopt, {{60, false}}});
  EXPECT_FALSE(sum.least);
  EXPECT_FALSE(sum.most->exact);
}

// How long freed blocks had lived between two looks at a ledger: what is known, and what is not.
constexpr uint32_t kMost = (1u << 27) - 1;

// What the library would have counted for blocks that had lived so long.
LedgerStackState freed(LedgerStackState stack, const std::vector<uint32_t>& ticks) {
  for (const uint32_t each : ticks) {
    ++stack.now.freed_blocks;
    stack.now.lifetime += each;
    stack.shortest = std::max(stack.shortest, kMost + 1 - each);
    stack.longest = std::max(stack.longest, each + 1);
  }
  return stack;
}

std::string text(const LiveTime& time) {
  const auto limit = [](const auto& one) {
    return !one ? "?" : (one->exact ? "" : "~") + std::to_string(one->ticks);
  };
  return std::to_string(time.frees) + ": " + limit(time.least) + " " + std::to_string(time.mean) +
         " " + limit(time.most);
}

TEST(LiveTime, OfWhatWasFreedMeanwhile) {
  const LedgerStackState before = freed({}, {50, 100});
  EXPECT_EQ(text(live_time(nullptr, freed({}, {10, 20, 90}), true)), "3: 10 40 90");
  EXPECT_EQ(text(live_time(&before, freed(before, {10, 20, 180}), true)), "3: 10 70 180");
  EXPECT_EQ(text(live_time(&before, before, true)), "0: ? 0 ?");
}

// The ledger does not say that 60 was the least, nor 100 that it was of before.
TEST(LiveTime, LimitsFromBefore) {
  const LedgerStackState before = freed({}, {50, 100});
  EXPECT_EQ(text(live_time(&before, freed(before, {60, 80}), true)), "2: ~50 70 ~100");
  EXPECT_EQ(text(live_time(&before, freed(before, {20, 80}), true)), "2: 20 50 ~100");
  EXPECT_EQ(text(live_time(&before, freed(before, {60, 180}), true)), "2: ~50 120 180");
}

TEST(LiveTime, NothingWhereAReportTookThem) {
  const LedgerStackState before = freed({}, {50, 100});
  EXPECT_EQ(text(live_time(&before, freed(before, {10, 200}), false)), "2: ? 105 ?");
}

// A mean from a free that was half counted, or nonsense of a damaged file.
TEST(LiveTime, StaysWithinItsLimits) {
  LedgerStackState torn = freed({}, {10, 20});
  torn.now.lifetime = 1000;
  EXPECT_EQ(text(live_time(nullptr, torn, true)), "2: 10 20 20");
  torn.longest = kMost + 2;
  EXPECT_EQ(text(live_time(nullptr, torn, true)), "2: ? 500 ?");
  torn.longest = 5;  // below the shortest
  EXPECT_EQ(live_time(nullptr, torn, true).frees, 2u);
}

}  // namespace
}  // namespace mtrace::test
