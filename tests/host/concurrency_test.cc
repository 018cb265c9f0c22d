// Threads that come and go, and the checkers of doc/internals/testing.md ("Concurrency") in their
// short forms: every order of the tables' scenarios, ThreadSanitizer.
#include "host_test.h"

namespace mtrace::test {
namespace {

using ConcurrencyTest = HostTest;

// In make check-long, and in make check when what they check has changed (tests/tests.mk).
class CheckersTest : public HostTest {
 protected:
  Result checker(Words argv) {
    argv[0] = build_dir() + "/" + argv[0];
    return run(plain(std::move(argv)));
  }
  Result script(const std::string& name, Words arguments) {
    return run(plain(joined({source_dir() + "/tests/" + name}, arguments)));
  }
  void expect_good_orders(Words command) {
    const std::string bound = longer() > 1 ? "3" : "2";
    Words within = {"--bound", bound, "--orders", std::to_string(8000 * longer())};
    if (longer() > 1) within = joined(within, {"--sample", "20000"});
    const Result result = expect_exit(checker(joined(command, within)));
    const Match match = first_match(result.out, "([0-9]+) orders, bound " + bound + "\n$");
    ASSERT_FALSE(match.empty()) << result.out;
    EXPECT_GT(std::stoi(match[1]), 50'000);
  }
};

TEST_F(ConcurrencyTest, ThreadsComeAndGo) {
  const std::string path = program("short_threads");
  const Result result = expect_exit(run(traced({path})));
  const std::vector<Memlog> logs = logs_of(result.pid);
  EXPECT_GE(logs.size(), 2u);
  EXPECT_EQ(site_sums(logs, path, path), told_sites(result.out).at(1));
  EXPECT_EQ(logs.back().get("lost"), "frames=0 stacks=0 blocks=0 inflight=0");
  EXPECT_EQ(logs.back().get("unknown-frees"), "0");
}

TEST_F(CheckersTest, EveryOrderOfAFewThreadsIsGood) { expect_good_orders({"schedule/scenarios"}); }

TEST_F(CheckersTest, EveryOrderIsGoodOnTheMemoryOfArm) {
  expect_good_orders({"schedule/scenarios", "--arm"});
}

TEST_F(CheckersTest, SeededBugsAreFound) {
  EXPECT_GE(lines_of(expect_exit(script("schedule/find_bugs.sh", {build_dir() + "/schedule"})).out)
                .size(),
            26u);
}

// Not what forks: in the child of a process with threads ThreadSanitizer waits for ever. It also
// runs handlers of signals later.
TEST_F(CheckersTest, ThreadSanitizerHasNothingToSay) {
  const std::string few =
      "ThreadSlots.*:*Threads*:*GrowthLosesNothing:*ConcurrentMisuse*:*BlocksFreedUnseen*:"
      "-*Fork*:ResourceTable.ThreadsWithIdsOfTheirOwn";
  const std::string all = "-*Fork*:*Child*:*Killed*:*InAHandler*";
  const Result result =
      expect_exit(checker({"tsan/tables", "--gtest_filter=" + (longer() > 1 ? all : few)}));
  EXPECT_LACKS(result.err, "WARNING: ThreadSanitizer");
  EXPECT_HAS(result.out, "ThreadsComeAndGoAndEverythingAddsUp");
}

}  // namespace
}  // namespace mtrace::test
