// The peak and the shares in it against a model that keeps a copy of everything at every new
// maximum.
#include "ledger/peak.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "concurrent.h"

namespace mtrace::ledger {
namespace {

constexpr unsigned kStacks = 20;

// What a stack does: its two sets, and who owns the first.
struct CountedStack {
  CounterSet own = {};
  CounterSet shared = {};
  uint32_t owner = 0;
};

struct PeakWorld {
  ThreadSlots threads;
  Peak peak;
  CountedStack stacks[kStacks];

  uint64_t share(unsigned stack) const {
    return peak.share(stacks[stack].own) + peak.share(stacks[stack].shared);
  }
  uint64_t shares() const {
    uint64_t sum = 0;
    for (unsigned s = 0; s < kStacks; ++s) sum += share(s);
    return sum;
  }
};

struct Step {
  unsigned stack;
  int64_t bytes;  // negative: a free
};

// The three steps of an operation, in the order in which the recorder takes them.
CounterSet& set_of(PeakWorld& world, uint32_t thread, const Step& step) {
  CountedStack& stack = world.stacks[step.stack];
  return stack.owner == thread ? stack.own : stack.shared;
}
void set_aside(PeakWorld& world, uint32_t thread, const Step& step) {
  world.peak.set_aside(set_of(world, thread, step), world.stacks[step.stack].owner == thread);
}
void count(PeakWorld& world, uint32_t thread, const Step& step) {
  CounterSet& set = set_of(world, thread, step);
  const bool owner = world.stacks[step.stack].owner == thread;
  if (step.bytes >= 0) {
    count_allocated(set, owner, {static_cast<uint64_t>(step.bytes), 1, 0});
  } else {
    count_freed(set, owner, {static_cast<uint64_t>(-step.bytes), 1, 0, 0, false, false});
  }
}
void change(PeakWorld& world, uint32_t thread, const Step& step) {
  world.peak.changed(world.threads, thread, step.bytes, step.bytes >= 0 ? 1 : -1);
}
void take_step(PeakWorld& world, uint32_t thread, const Step& step) {
  set_aside(world, thread, step);
  count(world, thread, step);
  change(world, thread, step);
}

// Blocks that are live, to choose frees from.
class RandomHeap {
 public:
  Step next(std::mt19937& random, unsigned percent_allocations) {
    if (live_.empty() || random() % 100 < percent_allocations) {
      const Step step = {static_cast<unsigned>(random() % kStacks),
                         static_cast<int64_t>(random() % 9 == 0 ? random() % 5000 : random() % 64)};
      live_.push_back(step);
      return step;
    }
    const size_t at = random() % live_.size();
    const Step gone = live_[at];
    live_[at] = live_.back();
    live_.pop_back();
    return {gone.stack, -gone.bytes};
  }

 private:
  std::vector<Step> live_;
};

TEST(Peak, OfOneThreadIsExact) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    auto world = std::make_unique<PeakWorld>();
    std::mt19937 random(seed);
    ASSERT_EQ(world->threads.acquire(1, 1), 1u);
    for (CountedStack& stack : world->stacks) stack.owner = random() % 4 == 0 ? 0 : 1;
    RandomHeap heap;
    int64_t live[kStacks] = {};
    int64_t at_peak[kStacks] = {};
    int64_t total = 0;
    int64_t height = 0;
    unsigned percent = 60;
    for (int i = 0; i < 3000; ++i) {
      if (random() % 300 == 0) percent = 30 + random() % 50;
      const Step step = heap.next(random, percent);
      take_step(*world, 1, step);
      live[step.stack] += step.bytes;
      total += step.bytes;
      if (total > height) {
        height = total;
        std::copy(std::begin(live), std::end(live), at_peak);
      }
      if (random() % 100 != 0) continue;
      ASSERT_EQ(world->peak.height(), static_cast<uint64_t>(height)) << "seed " << seed;
      for (unsigned s = 0; s < kStacks; ++s) {
        ASSERT_EQ(world->share(s), static_cast<uint64_t>(at_peak[s]))
            << "seed " << seed << ", operation " << i << ", stack " << s;
      }
    }
  }
}

// Threads one step at a time in a random order, so that what is true is known: what the total was
// after each operation was published. Every operation is in one of its steps when others go on.
TEST(Peak, OfSeveralThreadsIsWithinItsBound) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    auto world = std::make_unique<PeakWorld>();
    const unsigned count_of_threads = 2 + random() % 7;
    struct Thread {
      RandomHeap heap;
      Step step = {};
      int stage = 0;
    };
    std::vector<Thread> threads(count_of_threads);
    for (unsigned t = 1; t <= count_of_threads; ++t) {
      const uint32_t number = world->threads.acquire(getpid(), gettid());
      ASSERT_EQ(number, t);  // this thread lives: its slot is not given away
      if (number != world->threads.first()) world->peak.join(world->threads);
    }
    for (CountedStack& stack : world->stacks) stack.owner = random() % (count_of_threads + 1);
    int64_t total = 0;
    int64_t height = 0;
    for (int i = 0; i < 30'000; ++i) {
      const uint32_t number = 1 + random() % count_of_threads;
      Thread& thread = threads[number - 1];
      if (thread.stage == 0) thread.step = thread.heap.next(random, i % 9000 < 5000 ? 60 : 40);
      if (thread.stage == 0) set_aside(*world, number, thread.step);
      if (thread.stage == 1) count(*world, number, thread.step);
      if (thread.stage == 2) {
        change(*world, number, thread.step);
        total += thread.step.bytes;
        height = std::max(height, total);
      }
      thread.stage = (thread.stage + 1) % 3;
      if (random() % 1000 != 0) continue;
      const auto found = static_cast<int64_t>(world->peak.height());
      const auto kept = static_cast<int64_t>(world->peak.kept_at_most(world->threads));
      const auto shares = static_cast<int64_t>(world->shares());
      ASSERT_LE(std::abs(found - height), kept) << "seed " << seed << ", step " << i;
      ASSERT_LE(std::abs(shares - height), std::abs(shares - found) + kept);
      // In this order of things nothing comes between telling and raising, so the shares are off
      // only by the operations that were under way.
      ASSERT_LE(std::abs(shares - height), 2 * kept + count_of_threads * 5000)
          << "seed " << seed << ", step " << i;
    }
  }
}

TEST(Peak, ThreadsAtOnceEndWithTheTrueTotal) {
  auto world = std::make_unique<PeakWorld>();
  constexpr unsigned kThreads = 4;
  std::atomic<int64_t> truth = 0;
  for (unsigned t = 1; t <= kThreads; ++t) {
    ASSERT_EQ(world->threads.acquire(getpid(), gettid()), t);
    if (t != world->threads.first()) world->peak.join(world->threads);
  }
  for (unsigned s = 0; s < kStacks; ++s) world->stacks[s].owner = s % (kThreads + 1);
  run_threads(kThreads, [&](unsigned t) {
    std::mt19937 random(t + 1);
    RandomHeap heap;
    int64_t sum = 0;
    for (int i = 0; i < 200'000; ++i) {
      const Step step = heap.next(random, i < 100'000 ? 60 : 45);
      take_step(*world, t + 1, step);
      sum += step.bytes;
    }
    truth += sum;
  });
  EXPECT_EQ(world->threads.totals().live_bytes, static_cast<uint64_t>(truth.load()));
  EXPECT_GE(world->peak.height_now(world->threads), static_cast<uint64_t>(truth.load()));
  int64_t live = 0;
  for (const CountedStack& stack : world->stacks) {
    for (const CounterSet* set : {&stack.own, &stack.shared}) {
      live += static_cast<int64_t>(set->allocated_bytes - set->freed_bytes);
    }
  }
  EXPECT_EQ(live, truth.load());
}

TEST(Peak, ThreadThatIsJoinedTellsWhatItKept) {
  auto world = std::make_unique<PeakWorld>();
  ASSERT_EQ(world->threads.acquire(getpid(), gettid()), 1u);
  world->stacks[0].owner = 1;
  for (const int64_t bytes : {100'000, -90'000}) take_step(*world, 1, {0, bytes});
  // The first thread has published its peak and kept the rest to itself; with a total still at
  // 100,000 the second one's blocks would seem to be a new peak.
  world->peak.join(world->threads);
  ASSERT_EQ(world->threads.acquire(getpid(), gettid()), 2u);
  world->stacks[1].owner = 2;
  take_step(*world, 2, {1, 50'000});
  EXPECT_EQ(world->peak.height(), 100'000u);
  EXPECT_EQ(world->share(0), 100'000u);
  EXPECT_EQ(world->share(1), 0u);
}

// A thread that came early keeps to the wide limits that it was given then.
TEST(Peak, BoundHoldsWhenMoreThreadsCome) {
  auto world = std::make_unique<PeakWorld>();
  constexpr int64_t kLarge = 128 << 20;
  constexpr unsigned kThreads = 17;
  const auto book = [&](uint32_t number, int64_t bytes) {
    take_step(*world, number, {0, bytes});
    return bytes;
  };
  ASSERT_EQ(world->threads.acquire(getpid(), gettid()), 1u);
  int64_t total = book(1, kLarge);
  int64_t batches[kThreads + 1] = {};
  for (unsigned t = 2; t <= kThreads; ++t) {
    ASSERT_EQ(world->threads.acquire(getpid(), gettid()), t);
    world->peak.join(world->threads);
    batches[t] = kLarge / 1024 / t;
    total += book(t, 2 * batches[t]);  // published at once
  }
  for (unsigned t = 2; t <= kThreads; ++t) total += book(t, batches[t] - 1);
  EXPECT_LE(std::abs(static_cast<int64_t>(world->peak.height()) - total),
            static_cast<int64_t>(world->peak.kept_at_most(world->threads)));
  EXPECT_EQ(world->peak.height_now(world->threads), static_cast<uint64_t>(total));
}

}  // namespace
}  // namespace mtrace::ledger
