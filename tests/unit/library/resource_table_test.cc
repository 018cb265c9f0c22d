// The resource table against a map, and against threads that misuse it or vanish.
#include "ledger/resource_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/table_file.h"
#include "concurrent.h"

namespace mtrace::ledger {
namespace {

TEST(ResourceTable, SameAnswersAsAMap) {
  auto table = std::make_unique<ResourceTable>();
  base::g_table_header->lost_resources = 0;
  std::map<std::pair<unsigned, uint64_t>, Resource> reference;
  std::mt19937_64 random(3);
  size_t most = 0;
  for (int i = 0; i < 200'000; ++i) {
    const unsigned kind = 1 + random() % 30;
    // Grows to some ten thousand and shrinks again.
    const uint64_t id = random() % 1000;
    const bool growing = i / 50'000 % 2 == 0;
    const auto key = std::pair(kind, id);
    if (random() % 10 < (growing ? 7 : 3)) {
      const Resource fresh = {random() >> 17, static_cast<uint32_t>(random() | 1)};
      Resource ended = {};
      ASSERT_TRUE(table->put(kind, id, fresh, &ended));
      Resource& known = reference[key];
      ASSERT_EQ(ended.size, known.size);
      ASSERT_EQ(ended.stack, known.stack);
      known = fresh;
    } else {
      Resource old = {};
      const auto at = reference.find(key);
      ASSERT_EQ(table->take(kind, id, &old), at != reference.end());
      if (at == reference.end()) continue;
      ASSERT_EQ(old.size, at->second.size);
      ASSERT_EQ(old.stack, at->second.stack);
      reference.erase(at);
    }
    most = std::max(most, reference.size());
  }
  EXPECT_GT(most, 10'000u);
  EXPECT_EQ(base::g_table_header->lost_resources, 0u);
  size_t found = 0;
  table->for_each([&](const Resource&) { ++found; });
  EXPECT_EQ(found, reference.size());
}

// Ids that never come again: slots must be used again.
TEST(ResourceTable, FreshIdsForeverTakeNoMoreRoom) {
  auto table = std::make_unique<ResourceTable>();
  Resource old;
  for (uint64_t id = 0; id < 100'000; ++id) {
    ASSERT_TRUE(table->put(1, id, {id, 1}, &old));
    ASSERT_EQ(old.stack, 0u);
    if (id >= 100) {
      ASSERT_TRUE(table->take(1, id - 100, &old));
      ASSERT_EQ(old.size, id - 100);
    }
  }
  size_t live = 0;
  table->for_each([&](const Resource&) { ++live; });
  EXPECT_EQ(live, 100u);
}

TEST(ResourceTable, ExtremeIds) {
  auto table = std::make_unique<ResourceTable>();
  Resource old;
  for (const uint64_t id : {uint64_t{0}, ~uint64_t{0}, uint64_t{1} << 63}) {
    for (const unsigned kind : {1u, 30u}) {
      EXPECT_FALSE(table->take(kind, id, &old));
      EXPECT_TRUE(table->put(kind, id, {id, kind}, &old));
      EXPECT_EQ(old.stack, 0u);
    }
    for (const unsigned kind : {1u, 30u}) {
      EXPECT_TRUE(table->take(kind, id, &old));
      EXPECT_EQ(old.size, id);
      EXPECT_EQ(old.stack, kind);
      EXPECT_FALSE(table->take(kind, id, &old));
    }
  }
}

// Threads put and take the same few ids. Whatever the order, each resource that was put ends once
// and once only, and no id is ever live twice when all is quiet.
TEST(ResourceTable, ConcurrentMisuseCountsRight) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 200;
  constexpr uint64_t kIds = 3;
  auto table = std::make_unique<ResourceTable>();
  std::atomic<uint64_t> put{0};  // sums of sizes
  std::atomic<uint64_t> ended{0};
  for (int round = 0; round < kRounds; ++round) {
    run_threads(kThreads, [&](unsigned t) {
      std::mt19937_64 random(static_cast<uint64_t>(round * kThreads) + t);
      for (int i = 0; i < 200; ++i) {
        const uint64_t id = random() % kIds;
        const uint64_t size = random() >> 20;
        Resource old;
        if (random() % 3 != 0) {
          put += size;
          EXPECT_TRUE(table->put(1, id, {size, 1}, &old));
          ended += old.size;
        } else if (table->take(1, id, &old)) {
          ended += old.size;
        }
      }
    });
    for (uint64_t id = 0; id < kIds; ++id) {
      Resource old;
      if (table->take(1, id, &old)) ended += old.size;
      ASSERT_FALSE(table->take(1, id, &old)) << "live twice, in round " << round;
    }
    ASSERT_EQ(put, ended) << "round " << round;
  }
}

// Children of forks at any moment: the table is whole, but for the one change that was under way.
TEST(ResourceTable, ChildrenOfForksOfBusyThreads) {
  auto table = std::make_unique<ResourceTable>();
  base::g_table_header->lost_resources = 0;
  const std::jthread busy([&](const std::stop_token& stop) {
    std::mt19937_64 random(2);
    Resource old;
    while (!stop.stop_requested()) {
      const uint64_t id = random() % 500;
      random() % 2 == 0 ? table->put(1, id, {id, 1}, &old) : table->take(1, id, &old);
    }
  });
  for (int i = 0; i < 200; ++i) {
    const auto look = [&] {
      base::orphan_turns();
      size_t live = 0;
      table->for_each([&](const Resource&) { ++live; });
      Resource old;
      for (uint64_t id = 0; id < 500; ++id) {
        if (table->take(1, id, &old) && (--live, old.size != id || old.stack != 1)) return 1;
      }
      return live != 0 ? 2 : base::g_table_header->lost_resources > 1 ? 3 : 0;
    };
    EXPECT_EQ(status_in_child(look), 0) << i;
  }
}

}  // namespace
}  // namespace mtrace::ledger
