// Turns: one thread at a time, and what becomes of a turn whose holder is interrupted or gone.
#include "base/turn.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>

#include "concurrent.h"

namespace mtrace::base {
namespace {

uint64_t g_word = 0;
std::atomic<bool> g_held;

TEST(Turn, OneThreadAtATime) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 20'000;
  int count = 0;
  run_threads(kThreads, [&](unsigned) {
    for (int i = 0; i < kRounds; ++i) {
      const Turn turn(g_word);
      EXPECT_TRUE(turn);
      EXPECT_FALSE(turn.orphaned());
      ++count;
    }
  });
  EXPECT_EQ(count, kThreads * kRounds);
  EXPECT_EQ(g_word, 0u);
}

// A thread that holds the turn as long as this lives.
class Holder {
 public:
  Holder() {
    while (!held_) std::this_thread::yield();
  }

 private:
  std::atomic<bool> held_ = false;
  std::jthread thread_ = std::jthread([this](const std::stop_token& stop) {
    const Turn turn(g_word);
    held_ = true;
    while (!stop.stop_requested()) std::this_thread::yield();
  });
};

TEST(Turn, IsNotWaitedForLonger) {
  {
    const Holder holder;
    EXPECT_FALSE(Turn(g_word, 1'000'000));
  }
  EXPECT_TRUE(Turn(g_word));
}

// The one signal that is not blocked: its handler must not wait for the thread that it interrupts.
TEST(Turn, IsRefusedInAHandlerInsideTheHolder) {
  static int refused = 0;
  signal(SIGSYS, [](int) { refused += !Turn(g_word); });
  static int blocked = 0;
  signal(SIGUSR1, [](int) { ++blocked; });
  {
    const Turn turn(g_word);
    raise(SIGSYS);
    raise(SIGUSR1);
    EXPECT_EQ(refused, 1);
    EXPECT_EQ(blocked, 0);
  }
  EXPECT_EQ(blocked, 1);
  signal(SIGSYS, SIG_DFL);
  signal(SIGUSR1, SIG_DFL);
}

TEST(Turn, IsTakenOverInTheChildOfAFork) {
  const Holder holder;
  const auto take_over = [] {
    orphan_turns();
    for (const bool orphaned : {true, false}) {
      const Turn turn(g_word);
      if (!turn || turn.orphaned() != orphaned) return orphaned ? 1 : 2;
    }
    return 0;
  };
  EXPECT_EQ(status_in_child(take_over), 0);
}

// As a vfork child that is killed.
TEST(Turn, IsTakenOverFromTheKilled) {
  constexpr size_t kStack = 1 << 16;
  const auto hold = [](void*) -> int {
    const Turn turn(g_word);
    g_held = true;
    for (;;) pause();
  };
  auto stack = std::make_unique<char[]>(kStack);
  g_held = false;
  const pid_t child = clone(hold, stack.get() + kStack, CLONE_VM | SIGCHLD, nullptr);
  ASSERT_GT(child, 0);
  while (!g_held) sched_yield();
  EXPECT_FALSE(Turn(g_word, 300'000'000));  // it lives
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  const Turn turn(g_word);
  EXPECT_TRUE(turn);
  EXPECT_TRUE(turn.orphaned());
}

}  // namespace
}  // namespace mtrace::base
