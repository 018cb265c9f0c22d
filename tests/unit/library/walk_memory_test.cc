// Walks that remember the last one against walks that do not.
#include "unwind/walk_memory.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "unwind/walker.h"

// With frame pointers; clang keeps them at -O0, which the tests are built with.
#ifdef __clang__
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noinline, noclone, optimize("no-omit-frame-pointer")))
#endif
#define NO_TAIL asm volatile("" ::: "memory")

namespace mtrace::unwind {
namespace {

constexpr unsigned kMost = 128;

struct Both {
  WalkMemory memory;
  unsigned depth = 10;
  uint64_t walks = 0;
  uint64_t same = 0;
  uint64_t wrong = 0;
  std::vector<Walk> results = std::vector<Walk>(1 << 20);  // by id
};

// Whether the walk that is known again, or gone and remembered, is the one without memory.
void compare(Both& both, const Registers& from) {
  uintptr_t plain_frames[kMost];
  uintptr_t frames[kMost];
  const Walk plain = walk(from, plain_frames, both.depth);
  const uint32_t id = both.memory.same_walk(from, both.depth);
  Walk again = both.results[id];
  if (id == 0) {
    again = both.memory.is_worthwhile() ? walk_and_remember(from, frames, both.depth, both.memory)
                                        : walk(from, frames, both.depth);
    if (again.id != 0) both.results.at(again.id) = again;
    if (memcmp(frames, plain_frames, plain.count * sizeof frames[0]) != 0) ++both.wrong;
  } else if (again.id == 0) {
    return;  // what a signal handler has interrupted knows it, and has not come to say so
  }
  ++both.walks;
  both.same += id != 0 ? 1 : 0;
  if (again.hash != plain.hash || again.count != plain.count || again.end != plain.end) {
    ++both.wrong;
  }
}

APART void leaf(Both& both) {
  compare(both, MTRACE_CALLER_REGISTERS());
  NO_TAIL;
}

// Functions of equal frames: what they call finds the same stack pointer whoever called it.
#define TWIN(name)                             \
  APART void name(Both& both, unsigned path) { \
    if ((path & 3) == 0) {                     \
      leaf(both);                              \
    } else {                                   \
      kTwins[path & 3](both, path >> 2);       \
    }                                          \
    NO_TAIL;                                   \
  }
using Twin = void (*)(Both&, unsigned);
extern const Twin kTwins[4];
TWIN(first)
TWIN(second)
TWIN(third)
const Twin kTwins[4] = {nullptr, first, second, third};

TEST(WalkMemory, TwinsAtTheSamePlaceAreToldApart) {
  auto both = std::make_unique<Both>();
  std::mt19937 random(1);
  for (int i = 0; i < 200'000; ++i) {
    // Often the path of the time before, often one with a difference somewhere in the middle.
    static unsigned path = 1;
    if (random() % 3 == 0) path ^= (random() & 3) << random() % 24;
    kTwins[1 + random() % 3](*both, path & 0xffffff);
  }
  EXPECT_EQ(both->wrong, 0u);
  EXPECT_GT(both->same, 10'000u);
  EXPECT_LT(both->same, both->walks);
}

// Frames of many sizes, from few to more than the memory holds.
APART void wander(Both& both, std::mt19937& random, unsigned levels) {
  auto* room = static_cast<volatile char*>(__builtin_alloca(16 + random() % 4 * 64));
  room[0] = 1;
  leaf(both);
  if (levels > 0) wander(both, random, levels - 1);
  if (random() % 2 == 0) leaf(both);
  NO_TAIL;
}

TEST(WalkMemory, FramesOfAllSizesAndDepths) {
  for (const unsigned depth : {1u, 2u, 10u, 40u, 41u, 100u, 128u}) {
    auto both = std::make_unique<Both>();
    both->depth = depth;
    std::mt19937 random(depth);
    for (int i = 0; i < 300; ++i) wander(*both, random, random() % 60);
    EXPECT_EQ(both->wrong, 0u) << depth;
  }
}

TEST(WalkMemory, ChangedDepthIsNoticed) {
  auto both = std::make_unique<Both>();
  for (int i = 0; i < 1000; ++i) {
    both->depth = 1 + i % 7;
    leaf(*both);
  }
  EXPECT_EQ(both->wrong, 0u);
}

TEST(WalkMemory, OfAThreadThatHasEndedServesTheNext) {
  auto both = std::make_unique<Both>();
  for (int i = 0; i < 200; ++i) {
    std::thread([&] {
      std::mt19937 random(i);
      wander(*both, random, 20);
    }).join();
  }
  EXPECT_EQ(both->wrong, 0u);
}

Both* interrupted = nullptr;
std::atomic<uint64_t> handled = 0;

void walk_in_handler(int) {
  // The handler's walk, with the memory that it found in use, is the last one from now on.
  compare(*interrupted, MTRACE_CALLER_REGISTERS());
  ++handled;
}

TEST(WalkMemory, SignalHandlersMayWalkInTheMiddle) {
  auto both = std::make_unique<Both>();
  interrupted = both.get();
  struct sigaction action = {};
  action.sa_handler = walk_in_handler;
  sigaction(SIGUSR2, &action, nullptr);
  std::atomic<bool> done = false;
  const pthread_t walker = pthread_self();
  std::thread disturber([&] {
    while (!done) {
      pthread_kill(walker, SIGUSR2);
      std::this_thread::yield();
    }
  });
  std::mt19937 random(5);
  for (int i = 0; i < 3'000 || handled < 200; ++i) wander(*both, random, random() % 12);
  done = true;
  disturber.join();
  signal(SIGUSR2, SIG_DFL);
  EXPECT_EQ(both->wrong, 0u);
}

}  // namespace
}  // namespace mtrace::unwind
