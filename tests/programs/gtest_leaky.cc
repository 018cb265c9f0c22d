// Tests for mtrace_gtest.h to judge: those called Leaks... and FirstUse... must fail under the
// library, the others pass, and all pass without it.
#include <time.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "mtrace_gtest.h"
#include "truth.h"

static void* kept[8];

SITE void site_leaks_here(size_t size) {
  kept[0] = malloc(sized(size));
  NO_TAIL;
}

TEST(Leaky, LeaksFromASite) { site_leaks_here(1234); }

TEST(Leaky, LeaksInAThread) {
  std::thread([] { site_leaks_here(777); }).join();
}

TEST(Leaky, PassesAndLeavesNothing) {
  std::vector<std::string> words(100, "a string too long for the small buffer of a string");
  EXPECT_EQ(words.size(), 100u);
}

TEST(Leaky, PassesWithLess) {
  free(kept[0]);
  kept[0] = nullptr;
}

TEST(Leaky, PassesWithThreads) {
  for (int round = 0; round < 3; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 16; ++i) {
      threads.emplace_back([] {
        thread_local std::string own(100, 'x');
        auto block = std::make_unique<std::string>(own + own);
        EXPECT_EQ(block->size(), 200u);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(Leaky, PassesWithinWhatIsAllowed) {
  mtrace_allow_growth(500);
  site_leaks_here(500);
}

TEST(Leaky, LeaksMoreThanIsAllowed) {
  mtrace_allow_growth(500);
  site_leaks_here(501);
}

TEST(Leaky, PassesBecauseItIsLeftOut) {
  mtrace_allow_growth();
  site_leaks_here(100000);
}

TEST(Leaky, PassesWhenSkipped) {
  site_leaks_here(50);
  GTEST_SKIP();
}

TEST(Leaky, PassesWithADeath) {
  EXPECT_DEATH(
      {
        site_leaks_here(60);
        abort();
      },
      "");
}

TEST(Leaky, PassesWithATrace) {
  SCOPED_TRACE("outer");
  for (int i = 0; i < 3; ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(i, i);
  }
}

class Fixture : public testing::Test {
 protected:
  Fixture() : held_(new char[10000]) {}
  void SetUp() override { block_ = malloc(sized(20000)); }
  void TearDown() override { free(block_); }
  std::unique_ptr<char[]> held_;
  void* block_ = nullptr;
};
TEST_F(Fixture, PassesAsTheFixtureIsGoneBefore) { EXPECT_NE(held_.get(), block_); }

class Number : public testing::TestWithParam<int> {};
TEST_P(Number, PassesUnlessItIsTwo) {
  if (GetParam() == 2) site_leaks_here(222);
}
INSTANTIATE_TEST_SUITE_P(Some, Number, testing::Values(1, 2, 3));

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  mtrace_fail_leaking_tests();
  return RUN_ALL_TESTS();
}
