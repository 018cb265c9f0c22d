// The library loaded into a program that runs: what it counts from then on, what it leaves behind
// when it is detached, and how it begins anew.
#include "host_test.h"

namespace mtrace::test {
namespace {

class LateTest : public HostTest {};

TEST_F(LateTest, CountsFromTheAttachOn) {
  const Result result =
      expect_exit(run(plain({program("late"), library(), program("plugin_late.so"), out()})));
  auto told = told_sites(result.out);
  const auto runs = all_logs();
  const std::string name = "late-" + std::to_string(result.pid);
  ASSERT_TRUE(runs.size() == 2 && runs.contains(name) && runs.contains(name + ".2"));
  const std::vector<Memlog>& first = runs.at(name);
  const std::vector<Memlog>& second = runs.at(name + ".2");
  ASSERT_TRUE(first.size() == 2 && second.size() == 2);
  const std::string late = program("late");
  EXPECT_EQ(describe(site_sums({first[0]}, late, late)), describe(told[1]));
  EXPECT_EQ(describe(site_sums(first, late, late)), describe(changes({}, told[2])));
  // The constructor of a library that came later: malloc and operator new.
  const std::string plugin = program("plugin_late.so");
  int64_t of_plugin = 0;
  for (const Entry& entry : first[0].entries) {
    const bool through = std::any_of(entry.frames.begin(), entry.frames.end(),
                                     [&](const Frame& frame) { return frame.module == plugin; });
    if (through) of_plugin += entry.bytes;
  }
  EXPECT_EQ(of_plugin, 3000 + 5000);
  EXPECT_EQ(first[0].number("unknown-frees"), 2) << "the realloc and the free of earlier blocks";

  // What was done between detach and attach is neither live nor freed.
  EXPECT_EQ(second[0].amount("live").bytes, 44);
  EXPECT_EQ(describe(site_sums({second[0]}, late, late)), describe(told[3]));
  EXPECT_EQ(second[1].get("trigger"), "exit");
  EXPECT_GT(second[0].get("started"), first[1].get("taken"));
  for (const Memlog* log : {&first[0], &second[0]}) {
    EXPECT_HAS(log->get("note"), "before memlog attach");
  }
}

// By itself it does nothing where it is loaded late.
TEST_F(LateTest, IsIdleUntilItIsAttached) {
  const Result result = expect_exit(run(plain({"/usr/bin/python3", "-c",
                                               "import ctypes, sys, signal\n"
                                               "ctypes.CDLL(sys.argv[1])\n"
                                               "print(signal.getsignal(signal.SIGUSR1))\n",
                                               library()},
                                              {{"MTRACE_OUTPUT", out()}})));
  EXPECT_EQ(result.out, "0\n") << "SIG_DFL";
  EXPECT_EQ(result.err, "");
  EXPECT_TRUE(fs::is_empty(out()));
}

}  // namespace
}  // namespace mtrace::test
