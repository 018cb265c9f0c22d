// The table of regions against a plain list that does the same in the obvious way, and against
// what may happen to a thread inside it.
#include "ledger/region_table.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "pages.h"

namespace mtrace::ledger {
namespace {

// Bytes and number of regions, by stack.
using Sums = std::map<uint32_t, std::pair<int64_t, int64_t>>;

struct Plain {
  uintptr_t start, end;
  uint64_t origin;
  uint32_t stack;
  bool operator==(const Plain&) const = default;
};

// Page by page: which call made it.
class Model {
 public:
  void put(uintptr_t start, uintptr_t end, uint32_t stack) {
    ++origin_;
    for (uintptr_t page = start; page < end; page += kPage) pages_[page] = {origin_, stack};
  }
  void take(uintptr_t start, uintptr_t end) {
    pages_.erase(pages_.lower_bound(start), pages_.lower_bound(end));
  }
  uint64_t origins() const { return origin_; }
  std::vector<Plain> regions() const {
    std::vector<Plain> all;
    for (const auto& [page, made] : pages_) {
      const auto& [origin, stack] = made;
      if (!all.empty() && all.back().end == page && all.back().origin == origin) {
        all.back().end += kPage;
      } else {
        all.push_back({page, page + kPage, origin, stack});
      }
    }
    return all;
  }

 private:
  std::map<uintptr_t, std::pair<uint64_t, uint32_t>> pages_;
  uint64_t origin_ = 0;
};

std::vector<Plain> regions_of(RegionTable& table, uintptr_t low = 0, uintptr_t high = UINTPTR_MAX) {
  std::vector<Plain> all;
  table.for_each([&](const Region& region) {
    if (region.start < low || region.start >= high) return;
    all.push_back({region.start, region.end, region.origin, region.stack});
  });
  std::sort(all.begin(), all.end(),
            [](const Plain& a, const Plain& b) { return a.start < b.start; });
  return all;
}

Sums sums_of(const std::vector<Plain>& regions) {
  Sums sums;
  for (const Plain& region : regions) {
    sums[region.stack].first += static_cast<int64_t>(region.end - region.start);
    sums[region.stack].second += 1;
  }
  return sums;
}

void book(Sums* sums, const Pieces& pieces) {
  for (const Pieces::Piece& piece : pieces) {
    auto& [bytes, blocks] = (*sums)[piece.region.stack];
    bytes -= static_cast<int64_t>(piece.region.end - piece.region.start);
    blocks += piece.change;
  }
}

// Without what adds up to nothing.
Sums clean(Sums sums) {
  std::erase_if(sums, [](const auto& entry) { return entry.second == std::pair(0l, 0l); });
  return sums;
}

// One random operation on `pages` pages from `base`, on the table and what is counted of it.
// Returns true for a put; `start` and `end` are the addresses that changed, if any.
struct Mapping {
  bool put;
  bool gone;
  uintptr_t start, end;
  uint32_t stack;
};
Mapping random_step(RegionTable& table, std::mt19937_64& random, uintptr_t base, uintptr_t pages,
                    Sums* sums) {
  const uintptr_t first = random() % pages;
  const uintptr_t most = random() % 8 == 0 ? pages : 12;
  const uintptr_t count = 1 + random() % std::min<uintptr_t>(most, pages - first);
  Mapping step = {random() % 2 == 0, random() % 4 != 0, base + first * kPage,
                  base + (first + count) * kPage, 1 + static_cast<uint32_t>(random() % 5)};
  Pieces pieces;
  if (step.put) {
    auto& [bytes, blocks] = (*sums)[step.stack];
    bytes += static_cast<int64_t>(step.end - step.start);
    ++blocks;
    EXPECT_TRUE(table.put(step.start, step.end, step.stack, &pieces));
    book(sums, pieces);
    return step;
  }
  table.take(step.start, step.end, &pieces);
  EXPECT_TRUE(table.settle(pieces));
  if (step.gone) {
    book(sums, pieces);
  } else {
    for (const Pieces::Piece& piece : pieces) {
      int change = 0;
      EXPECT_TRUE(table.give_back(piece.region, &change));
      (*sums)[piece.region.stack].second += piece.change + change;
    }
  }
  return step;
}

TEST(RegionTable, SameAnswersAsAListOfPages) {
  auto table = std::make_unique<RegionTable>();
  Model model;
  Sums sums;
  std::mt19937_64 random(5);
  for (int i = 0; i < 60'000; ++i) {
    const uintptr_t base = uintptr_t{0x7f00} << 32;
    const Mapping step = random_step(*table, random, base, 200, &sums);
    if (step.put) {
      model.put(step.start, step.end, step.stack);
    } else if (step.gone) {
      model.take(step.start, step.end);
    }
    if (i % 16 != 0 && i > 2000) continue;
    const std::vector<Plain> expected = model.regions();
    ASSERT_EQ(regions_of(*table), expected) << i;
    ASSERT_EQ(table->size(), expected.size());
    ASSERT_EQ(clean(sums), sums_of(expected)) << i;
  }
  EXPECT_EQ(table->lost(), 0u);
}

TEST(RegionTable, PiecesOfOneRegion) {
  auto table = std::make_unique<RegionTable>();
  Pieces none;
  ASSERT_TRUE(table->put(10 * kPage, 20 * kPage, 7, &none));
  ASSERT_EQ(none.size(), 0u);
  Pieces middle;
  table->take(13 * kPage, 15 * kPage, &middle);
  ASSERT_EQ(middle.size(), 1u);
  EXPECT_EQ(middle.begin()->change, 1);
  EXPECT_EQ(middle.begin()->region.start, 13 * kPage);
  EXPECT_EQ(middle.begin()->region.end, 15 * kPage);
  EXPECT_EQ(table->size(), 2u);
  Pieces head;
  table->take(1 * kPage, 11 * kPage, &head);
  ASSERT_EQ(head.size(), 1u);
  EXPECT_EQ(head.begin()->change, 0);
  Pieces tail;
  table->take(18 * kPage, 30 * kPage, &tail);
  EXPECT_EQ(tail.begin()->change, 0);
  Pieces rest;
  table->take(0, 30 * kPage, &rest);
  ASSERT_EQ(rest.size(), 2u);
  EXPECT_EQ(rest.begin()->change + rest.begin()[1].change, -2);
  EXPECT_EQ(table->size(), 0u);
  // Given back in any order, it is one again.
  int sum = 0;
  for (const Pieces* pieces : {&tail, &middle, &rest, &head}) {
    EXPECT_TRUE(table->settle(*pieces));
    for (const Pieces::Piece& piece : *pieces) {
      int change = 0;
      EXPECT_TRUE(table->give_back(piece.region, &change));
      sum += change;
    }
  }
  EXPECT_EQ(sum, 1);
  EXPECT_EQ(regions_of(*table), (std::vector<Plain>{{10 * kPage, 20 * kPage, 1, 7}}));
}

// Two mappings that touch are two, though one stack made them; and what has been used again since
// is not given back.
TEST(RegionTable, GivesBackOnlyWhatBelongs) {
  auto table = std::make_unique<RegionTable>();
  Pieces none;
  ASSERT_TRUE(table->put(1 * kPage, 2 * kPage, 7, &none));
  ASSERT_TRUE(table->put(2 * kPage, 3 * kPage, 7, &none));
  Pieces second;
  table->take(2 * kPage, 3 * kPage, &second);
  int change = 0;
  EXPECT_TRUE(table->give_back(second.begin()->region, &change));
  EXPECT_EQ(change, 1);
  EXPECT_EQ(table->size(), 2u);
  Pieces again;
  table->take(1 * kPage, 3 * kPage, &again);
  ASSERT_TRUE(table->put(1 * kPage, 2 * kPage, 9, &none));
  for (const Pieces::Piece& piece : again) {
    EXPECT_EQ(table->give_back(piece.region, &change), piece.region.start == 2 * kPage);
  }
  EXPECT_EQ(table->lost(), 0u);
}

TEST(RegionTable, ThousandsAtOnce) {
  auto table = std::make_unique<RegionTable>();
  for (uintptr_t i = 0; i < 20'000; ++i) {
    Pieces none;
    ASSERT_TRUE(table->put(2 * i * kPage, (2 * i + 1) * kPage, 3, &none));
    ASSERT_EQ(none.size(), 0u);
  }
  Pieces all;
  table->take(0, UINTPTR_MAX, &all);
  EXPECT_EQ(all.size(), 20'000u);
  EXPECT_EQ(table->size(), 0u);
}

TEST(RegionTable, FullTableSaysWhatItLoses) {
  auto table = std::make_unique<RegionTable>();
  for (uintptr_t i = 0; i < RegionTable::kMost; ++i) {
    Pieces none;
    ASSERT_TRUE(table->put(8 * i * kPage, (8 * i + 5) * kPage, 3, &none));
  }
  EXPECT_EQ(table->lost(), 0u);
  Pieces none;
  EXPECT_FALSE(table->put(6 * kPage, 7 * kPage, 3, &none));
  EXPECT_EQ(none.size(), 0u);
  EXPECT_EQ(table->lost(), 1u);
  // A hole would make one more: what is behind it is given up.
  Pieces hole;
  table->take(2 * kPage, 3 * kPage, &hole);
  ASSERT_EQ(hole.size(), 1u);
  EXPECT_EQ(hole.begin()->region.end, 5 * kPage);
  EXPECT_EQ(hole.begin()->change, 0);
  EXPECT_EQ(table->lost(), 2u);
  EXPECT_EQ(table->size(), RegionTable::kMost);
  // Where there is room again, all is as ever.
  Pieces first;
  table->take(0, 2 * kPage, &first);
  EXPECT_EQ(first.size(), 1u);
  EXPECT_TRUE(table->put(6 * kPage, 7 * kPage, 3, &none));
  Pieces all;
  table->take(0, UINTPTR_MAX, &all);
  EXPECT_EQ(all.size(), size_t{RegionTable::kMost});
  EXPECT_EQ(table->lost(), 2u);
}

// Each thread in addresses of its own, with a model of its own.
TEST(RegionTable, Threads) {
  auto table = std::make_unique<RegionTable>();
  constexpr int kThreads = 4;
  Sums sums[kThreads];
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int i = 0; i < 20'000; ++i) {
        random_step(*table, random, (t + uintptr_t{1}) << 40, 100, &sums[t]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < kThreads; ++t) {
    const uintptr_t base = (t + uintptr_t{1}) << 40;
    EXPECT_EQ(clean(sums[t]), sums_of(regions_of(*table, base, base + (uintptr_t{1} << 40))));
  }
  EXPECT_EQ(table->lost(), 0u);
}

RegionTable* g_table;
std::atomic<int> g_handled;
void handle(int) {
  constexpr uintptr_t kBase = uintptr_t{9} << 40;
  Pieces none;
  if (!g_table->put(kBase, kBase + kPage, 4, &none) || none.size() != 0) _exit(97);
  Pieces pieces;
  g_table->take(kBase, kBase + kPage, &pieces);
  if (pieces.size() != 1 || !g_table->settle(pieces)) _exit(98);
  ++g_handled;
}

TEST(RegionTable, SignalHandlers) {
  auto table = std::make_unique<RegionTable>();
  g_table = table.get();
  g_handled = 0;
  signal(SIGALRM, handle);
  const itimerval often = {{0, 200}, {0, 200}};
  setitimer(ITIMER_REAL, &often, nullptr);
  Sums sums;
  std::mt19937_64 random(11);
  for (int i = 0; i < 20'000 || g_handled < 100; ++i) {
    random_step(*table, random, kPage, 100, &sums);
  }
  const itimerval never = {};
  setitimer(ITIMER_REAL, &never, nullptr);
  signal(SIGALRM, SIG_DFL);
  EXPECT_EQ(clean(sums), sums_of(regions_of(*table)));
}

// The table is whole, and can be used.
int look_at(RegionTable& table) {
  const std::vector<Plain> all = regions_of(table);
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].start >= all[i].end || (i > 0 && all[i].start < all[i - 1].end)) return 1;
  }
  if (all.size() != table.size()) return 2;
  Sums sums = sums_of(all);
  std::mt19937_64 random(3);
  for (int i = 0; i < 300; ++i) random_step(table, random, kPage, 100, &sums);
  if (clean(sums) != sums_of(regions_of(table))) return 3;
  return testing::Test::HasFailure() ? 4 : 0;
}

TEST(RegionTable, ChildrenOfForksOfBusyThreads) {
  auto table = std::make_unique<RegionTable>();
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      Sums sums;
      std::mt19937_64 random(t);
      while (!stop) random_step(*table, random, kPage * (1 + 200 * t), 200, &sums);
    });
  }
  for (int i = 0; i < 200; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const uint64_t before = table->lost();
      const uint64_t unsettled = table->after_fork();
      _exit(table->lost() == before + unsettled ? look_at(*table) : 5);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << i << " " << status;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

// What was taken before a fork is settled by the parent, and in the child already has been.
TEST(RegionTable, TakenBeforeAFork) {
  auto table = std::make_unique<RegionTable>();
  Pieces none;
  ASSERT_TRUE(table->put(kPage, 9 * kPage, 1, &none));
  Pieces pieces;
  table->take(2 * kPage, 3 * kPage, &pieces);
  EXPECT_EQ(table->after_fork(), 1u);
  EXPECT_FALSE(table->settle(pieces));
  EXPECT_EQ(table->lost(), 1u);
  EXPECT_EQ(table->after_fork(), 0u);
}

// What the child works with, made before: it must not be killed inside malloc.
struct Work {
  RegionTable* table;
  Sums sums;
};
int use_for_ever(void* pointer) {
  auto* work = static_cast<Work*>(pointer);
  std::mt19937_64 random(1);
  for (;;) random_step(*work->table, random, kPage, 100, &work->sums);
}

// A child that shares the memory, as of vfork, killed at any moment: the next one gets the lock.
TEST(RegionTable, KilledInside) {
  auto table = std::make_unique<RegionTable>();
  constexpr size_t kStack = 1 << 20;
  for (int i = 0; i < 3; ++i) {
    const uint32_t size = table->size();
    auto stack = std::make_unique<char[]>(kStack);
    Work work = {table.get(), {{1, {}}, {2, {}}, {3, {}}, {4, {}}, {5, {}}}};
    const pid_t child = clone(use_for_ever, stack.get() + kStack, CLONE_VM | SIGCHLD, &work);
    ASSERT_GT(child, 0);
    while (table->size() == size) sched_yield();
    kill(child, SIGKILL);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    EXPECT_EQ(look_at(*table), 0);
  }
}

}  // namespace
}  // namespace mtrace::ledger
