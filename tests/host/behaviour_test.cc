// The library under programs that do what breaks profilers: errors, exceptions, plug-ins, other
// allocators.
#include "host_test.h"

namespace mtrace::test {
namespace {

using BehaviourTest = HostTest;

TEST_F(BehaviourTest, ErrorsAreThoseOfTheAllocator) {
  const Result result = expect_exit(expect_same(traced({program("errors")})));
  const Memlog log = only_log(result.pid);
  // All but the buffer of stdout and the one block that calloc(0, n) leaves is given back.
  EXPECT_EQ(log.get("lost"), "frames=0 stacks=0 blocks=0 inflight=0");
}

TEST_F(BehaviourTest, ExceptionsAndJumps) {
  const Result result = expect_exit(run(traced({program("exceptions"), "signals"})));
  const std::vector<Memlog> logs = logs_of(result.pid, 2);
  const auto told = told_sites(result.out).at(1);
  EXPECT_EQ(site_sums({logs[0]}, program("exceptions"), program("exceptions")), told);
}

TEST_F(BehaviourTest, PluginInLocalScope) {
  const std::string directory = program("").substr(0, program("").size() - 1);
  const Result result = expect_exit(run(traced({program("plugin_host"), "cxx", directory})));
  const std::vector<Memlog> logs = logs_of(result.pid, 3);
  const std::string plugin = program("plugin_cxx.so");
  // Twenty strings of 1,000 bytes, their objects, and the vector that holds them.
  EXPECT_EQ(site_sums({logs[0]}, plugin, plugin),
            (Sites{{"site_plugin", {20 * (1001 + 32) + 20 * 8, 41}},
                   {"site_forms", {1000 + 1001 + 1002 + 1003 + 1004 + 1005, 6}}}));
  // With libstdc++ out of sight the library allocates itself.
  for (const Entry& entry : logs[0].entries) {
    if (entry.call == "new") continue;  // std::string's and std::vector's functions, in between
    size_t sites = 0;
    for (const Frame& frame : entry.frames) sites += frame.module == plugin;
    EXPECT_LE(sites, 1u) << entry.line;
  }
  EXPECT_EQ(site_sums({logs[1]}, plugin, plugin),
            (Sites{{"site_plugin", {-15 * (1001 + 32), -30}}}));
}

// Blocks keep the names of the module that made them, though another one is at its place by now.
TEST_F(BehaviourTest, ModuleAtTheAddressOfAnother) {
  const std::string directory = program("").substr(0, program("").size() - 1);
  for (const char* how : {"reload", "reload-unseen"}) {
    SCOPED_TRACE(how);
    const Result result = expect_exit(run(traced({program("plugin_host"), how, directory})));
    std::set<std::string> addresses;
    for (const std::string& line : lines_of(result.out)) {
      if (line.starts_with("at ")) addresses.insert(line);
    }
    EXPECT_LT(addresses.size(), 6u) << "no address was used twice: this shows nothing";
    const std::vector<Memlog> logs = logs_of(result.pid, 2);
    const std::string first = program("plugin_first.so");
    const std::string second = program("plugin_second.so");
    EXPECT_EQ(site_sums({logs[0]}, first, first), (Sites{{"site_first", {3000, 30}}}));
    EXPECT_EQ(site_sums({logs[0]}, second, second), (Sites{{"site_second", {6000, 30}}}));
  }
}

class HostileTest : public BehaviourTest {
 protected:
  std::vector<Memlog> survive(const std::string& mode, const Settings& more = {}) {
    const Result result = expect_exit(run(traced({program("hostile"), mode}, more)));
    EXPECT_TRUE(result.out.ends_with("fine\n")) << result.out;
    EXPECT_EQ(result.err, "");
    output_ = result.out;
    return logs_of(result.pid);
  }
  static Sites sites(const std::vector<Memlog>& logs) {
    return site_sums(logs, program("hostile"), program("hostile"));
  }
  std::string output_;
};

TEST_F(HostileTest, Fibers) {
  const std::vector<Memlog> logs = survive("fibers");
  EXPECT_EQ(sites(logs), told_sites(output_).at(1));
}

TEST_F(HostileTest, StackGivenByTheProgram) {
  EXPECT_EQ(sites(survive("own_stack")), (Sites{{"site_small_stack", {1000, 1}}}));
}

// The report is taken by a signal in a thread of PTHREAD_STACK_MIN bytes.
TEST_F(HostileTest, SmallestThread) {
  const std::vector<Memlog> logs = survive("smallest_thread");
  EXPECT_EQ(sites(logs), (Sites{{"site_small_stack", {1000, 1}}}));
  EXPECT_EQ(logs.size(), 2u);
}

TEST_F(HostileTest, DestructorsOfThreads) {
  EXPECT_EQ(sites(survive("thread_keys")), (Sites{{"site_destructor_of_thread", {77, 1}}}));
}

// Tables that grow while all threads need room in them lose nothing. Several runs, for it is a
// race.
TEST_F(HostileTest, Burst) {
  for (int round = 0; round < 20; ++round) {
    const std::vector<Memlog> logs = survive("burst");
    ASSERT_EQ(logs.size(), 1u);
    EXPECT_EQ(sites(logs), (Sites{{"site_burst", {16 * 5000 * 24, 16 * 5000}}}))
        << describe(sites(logs)) << logs[0].get("lost");
  }
}

TEST_F(HostileTest, DeepRecursion) {
  for (const char* depth : {"10", "128"}) {
    const std::vector<Memlog> logs = survive("deep", {{"MTRACE_DEPTH", depth}});
    EXPECT_EQ(sites(logs), (Sites{{"site_deep", {99, 1}}}));
    bool cut = false;
    for (const Entry& entry : logs.at(0).entries) {
      if (entry.bytes != 99) continue;
      cut = entry.cut;
      EXPECT_EQ(std::to_string(entry.frames.size()), depth);
    }
    EXPECT_TRUE(cut);
  }
}

// 16,384 stacks, in depth 128, so that none is merged with another.
TEST_F(HostileTest, ManyStacks) {
  const std::vector<Memlog> logs = survive("many_stacks", {{"MTRACE_DEPTH", "128"}});
  int64_t bytes = 0;
  for (int n = 0; n < 1 << 14; ++n) bytes += 1 + n % 7;
  EXPECT_EQ(sites(logs), (Sites{{"site_many_stacks", {bytes, 1 << 14}}}));
  EXPECT_GE(logs.at(0).entries.size(), 1u << 14);
}

// A library whose constructor allocates before that of libmtrace.so has run.
TEST_F(HostileTest, AllocationsBeforeTheConstructor) {
  for (const bool first : {true, false}) {
    const std::string early = program("plugin_early.so");
    const std::vector<Memlog> logs = survive(
        "early", {{"LD_PRELOAD", first ? early + ":" + library() : library() + ":" + early}});
    ASSERT_GE(logs.size(), 1u);
    Amount amount;
    for (const Entry& entry : logs.back().entries) {
      for (const Frame& frame : entry.frames) {
        if (frame.module != early) continue;
        amount += Amount{entry.bytes, entry.blocks};
        break;
      }
    }
    EXPECT_EQ(amount, (Amount{6, 1})) << "strdup(\"early\")";
  }
}

// ldd runs the loader in a mode of its own with LD_PRELOAD set.
TEST_F(HostileTest, Ldd) {
  const Result result = expect_exit(run(traced({"/usr/bin/ldd", program("hostile")})));
  EXPECT_HAS(result.out, "libc.so.6");
  EXPECT_EQ(result.err, "");
}

class AllocatorTest : public BehaviourTest, public ::testing::WithParamInterface<const char*> {
 protected:
  Command behind(Words argv) const {
    return traced(std::move(argv), {{"LD_PRELOAD", library() + ":" + GetParam()}});
  }
  void expect_truth(const std::string& name, int phases) {
    SCOPED_TRACE(name);
    Command command = behind({program(name), "signals"});
    if (GetParam() == std::string("libjemalloc.so.2")) command.env["TRUTH_LENIENT"] = "1";
    const Result result = expect_exit(run(command));
    EXPECT_EQ(result.err, "");
    const std::vector<Memlog> logs = logs_of(result.pid, static_cast<size_t>(phases) + 1);
    expect_phases(result.out, logs, program(name), program(name));
    EXPECT_HAS(logs[0].get("library"), std::string("allocator=") + GetParam());
  }
};

// Each allocation is counted once and stands at its caller, also where operator new is not made of
// malloc.
TEST_P(AllocatorTest, Truth) {
  expect_truth("truth_c.gcc.O2.pie.nofp", 4);
  expect_truth("truth_cxx.gcc.O2.pie.nofp", 3);
  expect_truth("truth_threads", 3);
}

TEST_P(AllocatorTest, BehavesAsWithout) {
  for (const char* name : {"errors", "exceptions"}) expect_same(behind({program(name)}));
}

TEST_P(AllocatorTest, Forks) {
  EXPECT_EQ(expect_exit(run(behind({program("fork_busy"), "20"}))).out, "good 20\n");
  EXPECT_EQ(all_logs().size(), 21u);
}

INSTANTIATE_TEST_SUITE_P(Others, AllocatorTest,
                         ::testing::Values("libjemalloc.so.2", "libtcmalloc.so.4",
                                           "libtcmalloc_minimal.so.4"),
                         named_after);

}  // namespace
}  // namespace mtrace::test
