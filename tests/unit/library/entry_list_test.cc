// What a report says of each stack comes out of its packed form as it went in.
#include "report/entry_list.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace mtrace::report {
namespace {

void expect_same(const Entry& a, const Entry& b) {
  EXPECT_EQ(a.change, b.change);
  EXPECT_EQ(a.live, b.live);
  EXPECT_EQ(a.slack, b.slack);
  EXPECT_EQ(a.share, b.share);
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.stack, b.stack);
  EXPECT_EQ(a.ordinal, b.ordinal);
  EXPECT_EQ(a.lifetimes.shortest, b.lifetimes.shortest);
  EXPECT_EQ(a.lifetimes.longest, b.lifetimes.longest);
  EXPECT_EQ(a.kind, b.kind);
}

class EntryListTest : public ::testing::Test {
 protected:
  // Of any length in bits, 0 and the largest one among them.
  uint64_t number() {
    const unsigned bits = static_cast<unsigned>(random_() % 65);
    return bits == 0 ? 0 : random_() >> (64 - bits) | uint64_t{1} << (bits - 1);
  }
  uint32_t word() { return static_cast<uint32_t>(number()); }
  Entry entry() {
    Entry entry = {};
    entry.change = {number(), number(), number(), number(), number(), number(), number()};
    entry.live = number();
    entry.slack = number();
    entry.share = number();
    entry.id = number();
    entry.stack = word();
    entry.ordinal = word();
    entry.lifetimes = {word(), word()};
    entry.kind = static_cast<uint8_t>(random_() % 32);
    return entry;
  }

  std::mt19937_64 random_{1};
};

TEST_F(EntryListTest, EachComesOutAsItWentIn) {
  constexpr uint32_t kCount = 20'000;
  EntryList list;
  ASSERT_TRUE(list.reserve(kCount));
  std::vector<Entry> all;
  std::vector<uint32_t> places;
  for (uint32_t i = 0; i < kCount; ++i) {
    all.push_back(entry());
    places.push_back(list.append(all.back()));
  }
  size_t next = 0;
  list.for_each([&](uint32_t place, const Entry& found) {
    ASSERT_LT(next, all.size());
    EXPECT_EQ(place, places[next]);
    expect_same(found, all[next++]);
  });
  EXPECT_EQ(next, all.size());
  for (uint32_t i = 0; i < kCount; i += 7) {
    expect_same(list.at(places[i]), all[i]);
    EXPECT_EQ(list.id_at(places[i]), all[i].id);
    EXPECT_EQ(list.stack_at(places[i]), all[i].stack);
  }
}

// At a page's end, beyond which nothing may be read.
TEST_F(EntryListTest, RoomForTheLargest) {
  Entry largest = {};
  std::memset(&largest.change, 0xff, sizeof largest.change);
  largest.live = largest.slack = largest.share = largest.id = UINT64_MAX;
  largest.stack = largest.ordinal = UINT32_MAX;
  largest.lifetimes = {UINT32_MAX, UINT32_MAX};
  largest.kind = 31;
  for (const uint32_t most : {1u, 34u, 35u, 1000u}) {
    EntryList list;
    ASSERT_TRUE(list.reserve(most));
    for (uint32_t i = 0; i < most; ++i) list.append(largest);
    list.for_each([&](uint32_t, const Entry& found) { expect_same(found, largest); });
  }
}

TEST_F(EntryListTest, WhatIsSmallTakesLittle) {
  EntryList list;
  ASSERT_TRUE(list.reserve(2));
  Entry entry = {};
  EXPECT_EQ(list.append(entry), 0u);
  entry.change.allocated_bytes = entry.live = 640;
  entry.change.allocated_blocks = 10;
  const uint32_t second = list.append(entry);
  EXPECT_LE(second, 24u);
  EXPECT_LT(second, sizeof(Entry) / 4);
}

}  // namespace
}  // namespace mtrace::report
