// Walks of a thread that knows its walks against walks without memory.
#include "unwind/walk_memory.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "known_walks.h"
#include "pages.h"

#define NO_TAIL asm volatile("" ::: "memory")

namespace mtrace::unwind {
namespace {

APART void leaf(KnownWalks& both) {
  both.compare(MTRACE_CALLER_REGISTERS());
  NO_TAIL;
}

// Functions of equal frames: what they call finds the same stack pointer whoever called it.
#define TWIN(name)                                   \
  APART void name(KnownWalks& both, unsigned path) { \
    if ((path & 3) == 0) {                           \
      leaf(both);                                    \
    } else {                                         \
      kTwins[path & 3](both, path >> 2);             \
    }                                                \
    NO_TAIL;                                         \
  }
using Twin = void (*)(KnownWalks&, unsigned);
extern const Twin kTwins[4];
TWIN(first)
TWIN(second)
TWIN(third)
const Twin kTwins[4] = {nullptr, first, second, third};

TEST(WalkMemory, TwinsAtTheSamePlaceAreToldApart) {
  auto both = std::make_unique<KnownWalks>();
  std::mt19937 random(1);
  for (int i = 0; i < 200'000; ++i) {
    // Often the path of the time before, often one with a difference somewhere in the middle.
    static unsigned path = 1;
    if (random() % 3 == 0) path ^= (random() & 3) << random() % 24;
    kTwins[1 + random() % 3](*both, path & 0xffffff);
  }
  EXPECT_EQ(both->wrong, 0u);
  EXPECT_GT(both->known, 10'000u);
  EXPECT_LT(both->known, both->walks);
}

// Frames of many sizes, from few to more than the memory holds.
APART void wander(KnownWalks& both, std::mt19937& random, unsigned levels) {
  auto* room = static_cast<volatile char*>(__builtin_alloca(16 + random() % 4 * 64));
  room[0] = 1;
  leaf(both);
  if (levels > 0) wander(both, random, levels - 1);
  if (random() % 2 == 0) leaf(both);
  NO_TAIL;
}

TEST(WalkMemory, FramesOfAllSizesAndDepths) {
  for (const unsigned depth : {1u, 2u, 10u, 40u, 41u, 100u, 128u}) {
    auto both = std::make_unique<KnownWalks>();
    both->depth = depth;
    std::mt19937 random(depth);
    for (int i = 0; i < 300; ++i) wander(*both, random, random() % 60);
    EXPECT_EQ(both->wrong, 0u) << depth;
    EXPECT_GT(both->shared, both->walks) << depth;
  }
}

// A frame of a size that each call chooses, so that no return address above it is at one distance,
// and of anything.
APART void widen(KnownWalks& both, std::mt19937& random, unsigned size, unsigned path) {
  auto* const room = static_cast<volatile unsigned*>(__builtin_alloca(size));
  for (unsigned i = 0; i < size / sizeof room[0]; ++i) room[i] = random();
  if (path == 0) {
    leaf(both);
  } else {
    kTwins[path](both, 0);
  }
  NO_TAIL;
}

// Each word of the stack, up to the frame of main: those that a walk up to the last one rests on,
// and others.
APART void poke(KnownWalks& both, uintptr_t end) {
  const Registers from = MTRACE_CALLER_REGISTERS();
  both.compare_last(from);
  auto* const words = reinterpret_cast<volatile uintptr_t*>(from.sp);
  for (size_t i = 0; from.sp + i * sizeof words[0] < end; ++i) {
    const uintptr_t before = words[i];
    for (const uintptr_t other : {before ^ 1, before + 16, before - 8, uintptr_t{0}, from.pc,
                                  from.sp, from.sp + 64, ~before}) {
      words[i] = other;
      both.compare_last(from);
      words[i] = before;
      both.compare_last(from);
    }
  }
  NO_TAIL;
}

APART void poke_below(KnownWalks& both, unsigned levels, uintptr_t end) {
  auto* room = static_cast<volatile char*>(__builtin_alloca(16 + levels % 3 * 32));
  room[0] = 1;
  if (levels == 0) {
    poke(both, end);
  } else {
    poke_below(both, levels - 1, end);
  }
  NO_TAIL;
}

TEST(LastWalk, EachWordThatItRestsOnIsCompared) {
  auto both = std::make_unique<KnownWalks>();
  const auto end = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  for (unsigned levels = 0; levels < 20; ++levels) poke_below(*both, levels, end);
  EXPECT_EQ(both->wrong, 0u);
  EXPECT_GT(both->shared, 10'000u);
}

TEST(WalkMemory, SizesOfAFrameThatTakeTurnsAreKnown) {
  for (unsigned path = 0; path < 2; ++path) {
    auto both = std::make_unique<KnownWalks>();
    std::mt19937 random(4);
    // Two callers are told apart first, by the return address that equal frames have in one place.
    const auto from_two_callers = [&](unsigned size) {
      widen(*both, random, size, path);
      widen(*both, random, size, path);
    };
    for (int i = 0; i < 10; ++i) from_two_callers(16);
    constexpr int kTimes = 2'000;
    for (int i = 0; i < kTimes; ++i) from_two_callers(16 + random() % 6 * 16);
    EXPECT_EQ(both->wrong, 0u);
    EXPECT_GT(both->known, 2 * kTimes * 9 / 10) << path;
  }
}

TEST(WalkMemory, NothingIsKnownAfterForget) {
  auto both = std::make_unique<KnownWalks>();
  for (int i = 0; i < 1000; ++i) {
    if (i % 50 == 0) {
      both->memory.forget();
      both->last_walk.forget();
      both->depth = 7 - i / 50 % 7;
    }
    leaf(*both);
  }
  EXPECT_EQ(both->wrong, 0u);
  EXPECT_GT(both->known, 900u);
}

// Some paths that take turns at one call site and stack pointer: told apart by the words in which
// they differ.
TEST(WalkMemory, PathsThatTakeTurnsAreKnown) {
  auto both = std::make_unique<KnownWalks>();
  std::mt19937 random(2);
  constexpr int kTimes = 20'000;
  for (int i = 0; i < kTimes; ++i) {
    const unsigned number = random() % 27;
    kTwins[1 + number % 3](*both, (1 + number / 3 % 3) | (1 + number / 9) << 2);
  }
  EXPECT_EQ(both->wrong, 0u);
  EXPECT_GT(both->known, kTimes * 8 / 10);
}

// Walks of one pc, cut at six frames; some end before. A return address stands for the size of its
// frame, and between them the stack has anything.
TEST(WalkMemory, EachWalkIsKnownWhateverIsAskedForOthers) {
  constexpr uintptr_t kBottoms = 2;
  constexpr uintptr_t kFunctions = 9;
  constexpr uintptr_t kFirst = 0x1000;
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    std::set<std::vector<uintptr_t>> different;
    const unsigned wanted = 2 + random() % 60;
    for (unsigned i = 0; i < wanted; ++i) {
      std::vector<uintptr_t> walk;
      do {
        walk.push_back(kFirst + random() % kFunctions);
      } while (walk.back() >= kFirst + kBottoms && walk.size() < 6);
      different.insert(walk);
    }
    const std::vector<std::vector<uintptr_t>> walks(different.begin(), different.end());
    auto memory = std::make_unique<WalkMemory>();
    std::array<uintptr_t, 40> stack;
    const auto sp = reinterpret_cast<uintptr_t>(stack.data());
    trust_stack(sp);
    constexpr int kTimes = 10'000;
    int known = 0;
    for (int i = 0; i < kTimes; ++i) {
      const size_t number = random() % walks.size();
      StackWord words[WalkDraft::most_words(16)];
      const Registers from = {0x1234, sp, 0};
      WalkDraft draft(from, words, std::size(words));
      for (uintptr_t& word : stack) word = 1 + random() % 1000;
      size_t place = 1;
      for (const uintptr_t address : walks[number]) {
        stack[place] = address;
        draft.step(false, &stack[place], address, false, nullptr, 0);
        place += 1 + address % 4;
      }
      const bool cut = walks[number].back() >= kFirst + kBottoms;
      if (cut) draft.step(false, &stack[place], stack[place], false, nullptr, 0);
      draft.ended(cut ? End::kDepth : End::kBottom);
      WalkMemory::Known found;
      if (memory->find(from, found)) {
        ++known;
        ASSERT_EQ(found.stack, number + 1);
      } else if (memory->is_worthwhile(false)) {
        memory->remember(draft, 10, static_cast<uint32_t>(number + 1));
      }
    }
    EXPECT_GT(known, kTimes * 9 / 10) << round << ": " << walks.size() << " walks";
  }
}

// The stack may be shorter than that of the walk that was remembered.
TEST(WalkMemory, NothingBeyondTheStackIsRead) {
  auto both = std::make_unique<KnownWalks>();
  for (unsigned path = 0; path < 4000; ++path) kTwins[1 + path % 3](*both, path / 3 % 81 * 5 % 256);
  ASSERT_GT(both->known, 0u);
  const Guarded page(kPage);
  const auto low = reinterpret_cast<uintptr_t>(page.start());
  const internal::ThreadStack stack = internal::thread_stack;
  unsigned known = 0;
  for (uintptr_t sp = low; sp < low + kPage; sp += sizeof sp) {
    for (const bool is_stack : {true, false}) {
      if (is_stack) internal::thread_stack = {low, kPage, low + kPage, 0, 0};
      known += both->knows({both->last.pc, sp, sp});
      internal::thread_stack = stack;
    }
  }
  EXPECT_EQ(known, 0u);
}

TEST(WalkMemory, OfAThreadThatHasEndedServesTheNext) {
  auto both = std::make_unique<KnownWalks>();
  for (int i = 0; i < 200; ++i) {
    std::thread([&] {
      both->memory.forget();
      std::mt19937 random(i);
      wander(*both, random, 20);
    }).join();
  }
  EXPECT_EQ(both->wrong, 0u);
}

KnownWalks* interrupted = nullptr;
std::atomic<uint64_t> handled = 0;

void walk_in_handler(int) {
  // With the memory that it found in use.
  interrupted->compare(MTRACE_CALLER_REGISTERS());
  ++handled;
}

TEST(WalkMemory, SignalHandlersMayWalkInTheMiddle) {
  auto both = std::make_unique<KnownWalks>();
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
