// The resource table against a map, and against threads that misuse it.
#include "ledger/resource_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace mtrace::ledger {
namespace {

TEST(ResourceTable, SameAnswersAsAMap) {
  auto table = std::make_unique<ResourceTable>();
  std::map<std::pair<unsigned, uint64_t>, Resource> reference;
  std::mt19937_64 random(3);
  size_t most = 0;
  for (int i = 0; i < 500'000; ++i) {
    const unsigned kind = 1 + random() % 30;
    // Grows to some ten thousand and shrinks again.
    const uint64_t id = random() % 1000;
    const bool growing = i / 50'000 % 2 == 0;
    const auto key = std::pair(kind, id);
    if (random() % 10 < (growing ? 7 : 3)) {
      const Resource fresh = {random() >> 17, static_cast<uint32_t>(random())};
      int ended = 0;
      ASSERT_TRUE(table->put(kind, id, fresh, [&](const Resource& old) {
        ++ended;
        const auto at = reference.find(key);
        ASSERT_NE(at, reference.end());
        EXPECT_EQ(old.size, at->second.size);
        EXPECT_EQ(old.stack, at->second.stack);
      }));
      ASSERT_EQ(ended, static_cast<int>(reference.count(key)));
      reference[key] = fresh;
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
  EXPECT_EQ(table->lost(), 0u);
  size_t found = 0;
  table->repair([&](const Resource&) { ++found; });
  EXPECT_EQ(found, reference.size());
}

// Ids that never come again: slots must be used again.
TEST(ResourceTable, FreshIdsForeverTakeNoMoreRoom) {
  auto table = std::make_unique<ResourceTable>();
  Resource old;
  for (uint64_t id = 0; id < 1'000'000; ++id) {
    ASSERT_TRUE(table->put(1, id, {id, 1}, [](const Resource&) { FAIL(); }));
    if (id >= 100) {
      ASSERT_TRUE(table->take(1, id - 100, &old));
      ASSERT_EQ(old.size, id - 100);
    }
  }
  // What a level of that many slots takes, not what a million ids would.
  size_t live = 0;
  table->repair([&](const Resource&) { ++live; });
  EXPECT_EQ(live, 100u);
}

TEST(ResourceTable, ExtremeIds) {
  auto table = std::make_unique<ResourceTable>();
  Resource old;
  for (const uint64_t id : {uint64_t{0}, ~uint64_t{0}, uint64_t{1} << 63}) {
    for (const unsigned kind : {1u, 30u}) {
      EXPECT_FALSE(table->take(kind, id, &old));
      EXPECT_TRUE(table->put(kind, id, {id, kind}, [](const Resource&) { FAIL(); }));
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
            EXPECT_TRUE(table->put(1, id, {size, 0}, [&](const Resource& r) { ended += r.size; }));
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

// Two threads put one id at the same moment, over and over: one of the two must end the other.
TEST(ResourceTable, TwoPutsAtOnceLeaveOne) {
  constexpr uint32_t kRounds = 50'000;
  auto table = std::make_unique<ResourceTable>();
  std::atomic<uint32_t> started{0};  // rounds
  std::atomic<uint32_t> done{0};     // puts
  std::atomic<uint32_t> ended{0};
  auto put = [&](uint32_t stack) {
    EXPECT_TRUE(table->put(1, 5, {1, stack}, [&](const Resource&) { ++ended; }));
    ++done;
  };
  std::thread other([&] {
    for (uint32_t round = 1; round <= kRounds; ++round) {
      for (int spins = 0; started < round; ++spins) {
        if (spins > 1000) std::this_thread::yield();
      }
      put(2);
    }
  });
  for (uint32_t round = 1; round <= kRounds; ++round) {
    started = round;
    put(1);
    for (int spins = 0; done < 2 * round; ++spins) {
      if (spins > 1000) std::this_thread::yield();
    }
    Resource old;
    EXPECT_TRUE(table->take(1, 5, &old)) << "none is live, in round " << round;
    EXPECT_FALSE(table->take(1, 5, &old)) << "live twice, in round " << round;
    EXPECT_EQ(ended, round);
    if (HasFailure()) break;
  }
  started = kRounds;
  other.join();
}

TEST(ResourceTable, ThreadsWithIdsOfTheirOwn) {
  constexpr int kThreads = 4;
  auto table = std::make_unique<ResourceTable>();
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Resource old;
      for (uint64_t i = 0; i < 50'000; ++i) {
        EXPECT_TRUE(table->put(2, t << 40 | i, {i, 7}, [](const Resource&) { FAIL(); }));
      }
      for (uint64_t i = 0; i < 50'000; ++i) {
        EXPECT_TRUE(table->take(2, t << 40 | i, &old));
        EXPECT_EQ(old.size, i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  table->repair([](const Resource&) { FAIL() << "something is left"; });
}

}  // namespace
}  // namespace mtrace::ledger
