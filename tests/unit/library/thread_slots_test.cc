// Threads that come and go: their slots, the counters that a slot owns, and everything they hand
// to each other.
#include "ledger/thread_slots.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "concurrent.h"
#include "ledger/block_table.h"
#include "ledger/peak.h"
#include "ledger/stack_table.h"

namespace mtrace::ledger {
namespace {

TEST(ThreadSlots, SlotsOfDeadThreadsAreUsedAgain) {
  auto slots = std::make_unique<ThreadSlots>();
  for (int i = 0; i < 300; ++i) {
    std::thread([&] {
      const uint32_t number = slots->acquire(getpid(), gettid());
      EXPECT_NE(number, 0u);
      EXPECT_EQ(slots->slot(number).tid, static_cast<uint32_t>(gettid()));
    }).join();
  }
  // One that has just ended may still be there for the kernel.
  EXPECT_LE(slots->used(), 8u);
}

TEST(ThreadSlots, LivingThreadsHaveSlotsOfTheirOwn) {
  constexpr unsigned kThreads = 64;
  auto slots = std::make_unique<ThreadSlots>();
  std::atomic<unsigned> arrived = 0;
  std::vector<std::atomic<uint32_t>> holders(ThreadSlots::kMost + 1);
  run_threads(kThreads, [&](unsigned) {
    const uint32_t number = slots->acquire(getpid(), gettid());
    EXPECT_NE(number, 0u);
    EXPECT_EQ(holders[number].fetch_add(1), 0u) << "two threads hold slot " << number;
    ++arrived;
    while (arrived < kThreads) std::this_thread::yield();
  });
}

// All tables together, as the recorder uses them.
struct World {
  StackTable stacks;
  BlockTable blocks;
  ThreadSlots threads;
  Peak peak;

  void allocate(uint32_t slot, uintptr_t address, uint64_t size, uintptr_t caller) {
    Operation operation(threads.slot(slot));
    const uintptr_t frames[] = {caller, caller / 2, 7};
    const uint32_t stack =
        stacks.intern({1, caller * 0x9e3779b97f4a7c15u, frames, 3, 0, false, false}, slot);
    ASSERT_TRUE(blocks.put(address, {size, stack, 0}));
    const auto [set, owner] = stacks.counting(stacks.record(stack), slot);
    peak.set_aside(set, owner);
    count_allocated(set, owner, {size, 1, 3});
    peak.changed(threads, slot, static_cast<int64_t>(size), 1);
  }
  void free(uint32_t slot, uintptr_t address) {
    Operation operation(threads.slot(slot));
    Block block;
    ASSERT_TRUE(blocks.take(address, &block));
    const auto [set, owner] = stacks.counting(stacks.record(block.stack), slot);
    peak.set_aside(set, owner);
    count_freed(set, owner, {block.size, 1, 3, 1, false, false});
    peak.changed(threads, slot, -static_cast<int64_t>(block.size), -1);
  }
};

// Addresses as an allocator hands them out: whoever holds one is its only user.
class Addresses {
 public:
  uintptr_t take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return 0x10000 + 32 * next_++;
    const uintptr_t address = free_.back();
    free_.pop_back();
    return address;
  }
  void give(uintptr_t address) {
    const std::lock_guard lock(mutex_);
    free_.push_back(address);
  }
  // Blocks on their way to whoever frees them.
  void post(uintptr_t address) {
    const std::lock_guard lock(mutex_);
    posted_.push_back(address);
  }
  uintptr_t fetch() {
    const std::lock_guard lock(mutex_);
    if (posted_.empty()) return 0;
    const uintptr_t address = posted_.back();
    posted_.pop_back();
    return address;
  }

 private:
  std::mutex mutex_;
  std::vector<uintptr_t> free_;
  std::vector<uintptr_t> posted_;
  uintptr_t next_ = 0;
};

TEST(ThreadSlots, ThreadsComeAndGoAndEverythingAddsUp) {
  constexpr unsigned kThreads = 400;
  constexpr unsigned kAtOnce = 6;
  constexpr unsigned kOperations = 400;
  auto world = std::make_unique<World>();
  ASSERT_TRUE(world->stacks.init(nullptr));
  ASSERT_TRUE(world->blocks.init());
  Addresses addresses;
  std::atomic<unsigned> begun = 0;
  std::atomic<uint64_t> live_bytes_left = 0;
  std::atomic<uint64_t> allocations = 0;

  const auto live_for_a_while = [&](unsigned seed) {
    std::mt19937 random(seed);
    const uint32_t slot = world->threads.acquire(getpid(), gettid());
    ASSERT_NE(slot, 0u);
    if (slot != world->threads.first()) world->peak.join(world->threads);
    uint64_t added = 0;
    for (unsigned i = 0; i < kOperations; ++i) {
      if (random() % 5 < 3) {
        const uintptr_t address = addresses.take();
        world->allocate(slot, address, 16 + address % 4096, 0x1000 + random() % 60);
        added += 16 + address % 4096;
        ++allocations;
        addresses.post(address);
      } else if (const uintptr_t address = addresses.fetch(); address != 0) {
        world->free(slot, address);
        added -= 16 + address % 4096;
        addresses.give(address);
      }
    }
    live_bytes_left += added;
  };

  // As a report does: reads while all others go on.
  auto reader = std::jthread([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      uint64_t blocks = 0;
      world->blocks.for_each([&](uintptr_t, const Block& block) { blocks += block.size != 0; });
      Counters sum = {};
      uint64_t shares = 0;
      world->stacks.for_each([&](uint32_t, const StackRecord& stack) {
        sum += world->stacks.read(stack);
        world->stacks.each_set(stack,
                               [&](const CounterSet& set) { shares += world->peak.share(set); });
      });
      world->peak.height_now(world->threads);
      world->threads.totals();
      EXPECT_LE(sum.freed_blocks, sum.allocated_blocks);
      std::this_thread::yield();
    }
  });
  run_threads(kAtOnce, [&](unsigned) {
    for (unsigned seed; (seed = begun++) < kThreads;) std::thread(live_for_a_while, seed).join();
  });
  reader = {};

  Counters sum = {};
  world->stacks.for_each(
      [&](uint32_t, const StackRecord& stack) { sum += world->stacks.read(stack); });
  uint64_t bytes = 0;
  uint64_t blocks = 0;
  EXPECT_EQ(
      world->blocks.repair([&](uintptr_t, const Block& block) { bytes += block.size, ++blocks; }),
      0u);
  EXPECT_EQ(bytes, live_bytes_left);
  EXPECT_EQ(sum.allocated_blocks, allocations);
  EXPECT_EQ(live_bytes(sum), bytes);
  EXPECT_EQ(live_blocks(sum), blocks);
  EXPECT_EQ(world->threads.totals().live_bytes, bytes);
  EXPECT_EQ(world->threads.totals().live_blocks, blocks);
  EXPECT_EQ(world->blocks.lost_blocks(), 0u);
  EXPECT_EQ(world->stacks.size(), 61u);
  // Threads that end at once are many; still no more slots than were ever needed at a time.
  EXPECT_LE(world->threads.used(), 4 * kAtOnce);
}

}  // namespace
}  // namespace mtrace::ledger
