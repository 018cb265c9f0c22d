// The resource table against a map, and against threads that misuse it or vanish.
#include "ledger/resource_table.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/table_file.h"

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
  std::atomic<int> ready{0};
  std::atomic<uint64_t> put{0};  // sums of sizes
  std::atomic<uint64_t> ended{0};
  for (int round = 0; round < kRounds; ++round) {
    ready = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937_64 random(static_cast<uint64_t>(round * kThreads + t));
        ++ready;
        while (ready < kThreads) std::this_thread::yield();
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
    }
    for (std::thread& thread : threads) thread.join();
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
  std::atomic<bool> stop = false;
  std::thread busy([&] {
    std::mt19937_64 random(2);
    Resource old;
    while (!stop) {
      const uint64_t id = random() % 500;
      random() % 2 == 0 ? table->put(1, id, {id, 1}, &old) : table->take(1, id, &old);
    }
  });
  for (int i = 0; i < 200; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      base::orphan_turns();
      size_t live = 0;
      table->for_each([&](const Resource&) { ++live; });
      Resource old;
      for (uint64_t id = 0; id < 500; ++id) {
        if (table->take(1, id, &old) && (--live, old.size != id || old.stack != 1)) _exit(1);
      }
      _exit(live != 0 ? 2 : base::g_table_header->lost_resources > 1 ? 3 : 0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << i;
  }
  stop = true;
  busy.join();
}

TEST(ResourceTable, ThreadsWithIdsOfTheirOwn) {
  constexpr int kThreads = 4;
  auto table = std::make_unique<ResourceTable>();
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Resource old;
      for (uint64_t i = 0; i < 50'000; ++i) {
        EXPECT_TRUE(table->put(2, t << 40 | i, {i, 7}, &old));
        EXPECT_EQ(old.stack, 0u);
      }
      for (uint64_t i = 0; i < 50'000; ++i) {
        EXPECT_TRUE(table->take(2, t << 40 | i, &old));
        EXPECT_EQ(old.size, i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  table->for_each([](const Resource&) { FAIL() << "something is left"; });
}

}  // namespace
}  // namespace mtrace::ledger
