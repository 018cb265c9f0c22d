// The table of regions against a map of pages that does the same in the obvious way, and against
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

#include "base/table_file.h"
#include "concurrent.h"
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

// In the order of the table, which must be that of their addresses.
std::vector<Plain> regions_of(const RegionTable& table, uintptr_t low = 0,
                              uintptr_t high = UINTPTR_MAX) {
  std::vector<Plain> all;
  table.for_each([&](const Region& region) {
    if (region.start < low || region.start >= high) return;
    all.push_back({region.start, region.end, region.origin, region.stack});
  });
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

// Of the thread that uses a table.
thread_local Sums* t_sums = nullptr;
void book(const Region& region, int change) {
  auto& [bytes, blocks] = (*t_sums)[region.stack];
  bytes -= static_cast<int64_t>(region.end - region.start);
  blocks += change;
}
void book_nothing(const Region&, int) {}

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
  t_sums = sums;
  if (step.put) {
    auto& [bytes, blocks] = (*sums)[step.stack];
    bytes += static_cast<int64_t>(step.end - step.start);
    ++blocks;
    EXPECT_TRUE(table.put(step.start, step.end, step.stack, book));
    return step;
  }
  const RegionTable::Ending ending = table.begin_end(step.start, step.end);
  EXPECT_TRUE(table.end(
      ending, book, step.gone ? nullptr : +[](const Region&) { return true; }));
  return step;
}

TEST(RegionTable, SameAnswersAsAMapOfPages) {
  auto table = std::make_unique<RegionTable>();
  base::g_table_header->lost_regions = 0;
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
  EXPECT_EQ(base::g_table_header->lost_regions, 0u);
}

// As above, with thousands of regions, so that chunks are split and joined.
TEST(RegionTable, SameAnswersAsAMapWhenLarge) {
  auto table = std::make_unique<RegionTable>();
  base::g_table_header->lost_regions = 0;
  std::map<uintptr_t, Plain> model;
  std::mt19937_64 random(8);
  uint64_t origin = 0;
  for (int i = 0; i < 200'000; ++i) {
    // Grows to some ten thousand and shrinks again; upwards, downwards and anywhere.
    const bool grows = i / 25'000 % 2 == 0;
    const uintptr_t page = i % 3 == 0   ? 50'000 + uintptr_t(i) / 9
                           : i % 3 == 1 ? 50'000 - uintptr_t(i) / 9
                                        : random() % 100'000;
    const uintptr_t start = (1 + page) * kPage;
    if (random() % 8 < (grows ? 7 : 1)) {
      ASSERT_TRUE(table->put(start, start + kPage, 1, book_nothing));
      model[start] = {start, start + kPage, ++origin, 1};
    } else {
      const uintptr_t end = start + (1 + random() % 40) * kPage;
      ASSERT_TRUE(table->end(table->begin_end(start, end), book_nothing));
      model.erase(model.lower_bound(start), model.lower_bound(end));
    }
    ASSERT_EQ(table->size(), model.size()) << i;
    if (i % 5'000 != 0) continue;
    std::vector<Plain> expected;
    for (const auto& [at, region] : model) expected.push_back(region);
    ASSERT_EQ(regions_of(*table), expected) << i;
  }
  EXPECT_EQ(base::g_table_header->lost_regions, 0u);
}

// What calls under way have cut counts as one region until it ends.
TEST(RegionTable, PiecesOfOneRegion) {
  auto table = std::make_unique<RegionTable>();
  std::vector<std::pair<uintptr_t, int>> ended;  // first pages, and changes
  static thread_local decltype(ended)* t_ended = nullptr;
  t_ended = &ended;
  const auto note = [](const Region& region, int change) {
    t_ended->push_back({region.start / kPage, change});
  };
  const auto kept = [](const Region&) { return true; };
  ASSERT_TRUE(table->put(10 * kPage, 20 * kPage, 7, note));
  const auto middle = table->begin_end(13 * kPage, 15 * kPage);
  const auto tail = table->begin_end(18 * kPage, 30 * kPage);
  const auto head = table->begin_end(1 * kPage, 11 * kPage);
  EXPECT_EQ(middle.bytes, 2 * kPage);
  EXPECT_EQ(tail.bytes, 2 * kPage);
  EXPECT_EQ(head.bytes, 1 * kPage);
  EXPECT_EQ(table->size(), 5u);
  EXPECT_TRUE(table->end(middle, note));
  EXPECT_TRUE(table->end(head, note));
  EXPECT_TRUE(table->end(tail, note, kept));
  EXPECT_EQ(ended, (decltype(ended){{13, 1}, {10, 0}}));
  EXPECT_EQ(regions_of(*table),
            (std::vector<Plain>{{11 * kPage, 13 * kPage, 1, 7}, {15 * kPage, 20 * kPage, 1, 7}}));
  // The second of two calls for the same addresses finds nothing left to end.
  const auto rest = table->begin_end(0, 30 * kPage);
  EXPECT_EQ(rest.bytes, 7 * kPage);
  EXPECT_EQ(table->begin_end(0, 30 * kPage).mark, 0u);
  EXPECT_TRUE(table->end(rest, note));
  EXPECT_EQ(ended, (decltype(ended){{13, 1}, {10, 0}, {11, -1}, {15, -1}}));
  EXPECT_EQ(table->size(), 0u);
}

// Two mappings that touch are two, though one stack made them; and what has been mapped again since
// is not ended.
TEST(RegionTable, EndsOnlyWhatBelongs) {
  auto table = std::make_unique<RegionTable>();
  base::g_table_header->lost_regions = 0;
  Sums sums;
  t_sums = &sums;
  ASSERT_TRUE(table->put(1 * kPage, 2 * kPage, 7, book));
  ASSERT_TRUE(table->put(2 * kPage, 3 * kPage, 7, book));
  const auto both = table->begin_end(1 * kPage, 3 * kPage);
  EXPECT_EQ(both.bytes, 2 * kPage);
  ASSERT_TRUE(table->put(1 * kPage, 2 * kPage, 9, book));
  EXPECT_EQ(sums, (Sums{{7, {-int64_t(kPage), -1}}}));
  EXPECT_TRUE(table->end(both, book));
  EXPECT_EQ(sums, (Sums{{7, {-2 * int64_t(kPage), -2}}}));
  EXPECT_EQ(regions_of(*table), (std::vector<Plain>{{1 * kPage, 2 * kPage, 3, 9}}));
  EXPECT_EQ(base::g_table_header->lost_regions, 0u);
}

TEST(RegionTable, FullTableSaysWhatItLoses) {
  auto table = std::make_unique<RegionTable>();
  base::g_table_header->lost_regions = 0;
  uintptr_t count = 0;
  while (table->put(8 * count * kPage, (8 * count + 5) * kPage, 3, book_nothing)) ++count;
  EXPECT_EQ(count, RegionTable::kMost - 2);
  EXPECT_EQ(base::g_table_header->lost_regions, 1u);
  // There is room for one hole, and a second would cut a region.
  const auto hole = table->begin_end(2 * kPage, 3 * kPage);
  EXPECT_EQ(hole.bytes, kPage);
  EXPECT_EQ(table->size(), RegionTable::kMost);
  const auto second = table->begin_end(10 * kPage, 11 * kPage);
  EXPECT_EQ(second.mark, 0u);
  EXPECT_EQ(base::g_table_header->lost_regions, 2u);
  EXPECT_TRUE(table->end(hole, book_nothing));
  // Where there is room again, all is as ever.
  EXPECT_TRUE(table->end(table->begin_end(0, 20 * kPage), book_nothing));
  EXPECT_TRUE(table->put(6 * kPage, 7 * kPage, 3, book_nothing));
  EXPECT_TRUE(table->end(table->begin_end(0, UINTPTR_MAX), book_nothing));
  EXPECT_EQ(table->size(), 0u);
  EXPECT_EQ(base::g_table_header->lost_regions, 2u);
}

// Each thread in addresses of its own, with a model of its own.
TEST(RegionTable, Threads) {
  auto table = std::make_unique<RegionTable>();
  base::g_table_header->lost_regions = 0;
  constexpr int kThreads = 4;
  Sums sums[kThreads];
  run_threads(kThreads, [&](unsigned t) {
    std::mt19937_64 random(t);
    for (int i = 0; i < 20'000; ++i) {
      random_step(*table, random, (t + uintptr_t{1}) << 40, 100, &sums[t]);
    }
  });
  for (int t = 0; t < kThreads; ++t) {
    const uintptr_t base = (t + uintptr_t{1}) << 40;
    EXPECT_EQ(clean(sums[t]), sums_of(regions_of(*table, base, base + (uintptr_t{1} << 40))));
  }
  EXPECT_EQ(base::g_table_header->lost_regions, 0u);
}

RegionTable* g_table;
std::atomic<int> g_handled;
void handle(int) {
  constexpr uintptr_t kBase = uintptr_t{9} << 40;
  const auto covers = [](const Region&, int) { _exit(96); };
  if (!g_table->put(kBase, kBase + kPage, 4, covers)) _exit(97);
  const RegionTable::Ending ending = g_table->begin_end(kBase, kBase + kPage);
  if (ending.bytes != kPage || !g_table->end(ending, book_nothing)) _exit(98);
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

// The table is whole, and can be used, after a thread has vanished.
int look_at(RegionTable& table) {
  table.after_fork();
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
  std::vector<std::jthread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t](const std::stop_token& stop) {
      Sums sums;
      std::mt19937_64 random(t);
      while (!stop.stop_requested()) random_step(*table, random, kPage * (1 + 200 * t), 200, &sums);
    });
  }
  for (int i = 0; i < 200; ++i) {
    const auto look = [&] {
      base::orphan_turns();
      return look_at(*table);
    };
    EXPECT_EQ(status_in_child(look), 0) << i;
  }
}

// What a call was about to end at a fork is the parent's to end; the child has lost it.
TEST(RegionTable, EndsBeforeAFork) {
  auto table = std::make_unique<RegionTable>();
  base::g_table_header->lost_regions = 0;
  ASSERT_TRUE(table->put(kPage, 9 * kPage, 1, book_nothing));
  const RegionTable::Ending ending = table->begin_end(2 * kPage, 3 * kPage);
  EXPECT_EQ(table->after_fork(), 1u);
  EXPECT_FALSE(table->end(ending, book_nothing));
  EXPECT_EQ(base::g_table_header->lost_regions, 1u);
  EXPECT_EQ(table->size(), 2u);
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

// A child that shares the memory, as of vfork, killed at any moment: the next one gets the turn,
// and counts what one that was inside has lost.
TEST(RegionTable, KilledInside) {
  auto table = std::make_unique<RegionTable>();
  base::g_table_header->lost_regions = 0;
  constexpr size_t kStack = 1 << 20;
  for (int i = 0; i < 3 || (i < 1000 && base::g_table_header->lost_regions == 0); ++i) {
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
  EXPECT_GT(base::g_table_header->lost_regions, 0u);
}

}  // namespace
}  // namespace mtrace::ledger
