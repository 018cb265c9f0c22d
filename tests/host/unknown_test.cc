// MTRACE_UNKNOWN=stacks: frees that match no known block stand in the report at their sites.
#include "host_test.h"

namespace mtrace::test {
namespace {

class UnknownTest : public HostTest {
 protected:
  static std::string site_of(const Entry& entry) {
    for (const Frame& frame : entry.frames) {
      if (frame.function.starts_with("site_")) return frame.function;
    }
    return "?";
  }
  static Sites sites_of(const Memlog& log, const std::string& kind) {
    Sites sites;
    for (const Entry& entry : log.entries) {
      if (entry.kind == kind) sites[site_of(entry)] += Amount{entry.bytes, entry.blocks};
    }
    return sites;
  }
  Result run_with(const std::string& variant) {
    return run(named({program("strange_frees"), variant},
                     {{"MTRACE_UNKNOWN", "stacks"}, {"MTRACE_REPORT_ON_FATAL", "1"}}));
  }
};

TEST_F(UnknownTest, NamesTheSites) {
  const Result result = expect_exit(run_with(""));
  const Memlog log = only_log(result.pid);
  EXPECT_EQ(sites_of(log, "unknown-free"),
            (Sites{{"site_frees_unknown", {0, 3}}, {"site_resizes_unknown", {0, 1}}}));
  EXPECT_EQ(log.number("unknown-frees"), 4);
}

TEST_F(UnknownTest, FreesTwice) {
  const Result result = run_with("twice");
  EXPECT_EQ(result.how(), "signal 6") << result.err;
  EXPECT_EQ(sites_of(only_log(result.pid), "unknown-free").at("site_frees_again"), (Amount{0, 1}));
}

// A program that glibc ends leaves its ledger, from which memlog run makes the report.
TEST_F(UnknownTest, RecoveredByRun) {
  const Result result = run(tool({"run", "-o", temp(), "--", program("strange_frees"), "twice"},
                                 {{"MTRACE_UNKNOWN", "stacks"}}));
  EXPECT_EQ(result.how(), "signal 6") << result.err;
  const auto processes = read_directory(temp());
  ASSERT_EQ(processes.size(), 1u);
  const Memlog& log = processes.begin()->second.at(0);
  EXPECT_EQ(sites_of(log, "unknown-free").at("site_frees_again"), (Amount{0, 1}));
}

// Blocks from before the attachment are unknown, too.
TEST_F(UnknownTest, AttachedNamesTheSites) {
  Process process(plain({program("strange_frees"), "attached"}), "ready");
  expect_exit(run(tool({"attach", process.id()}, {{"MTRACE_UNKNOWN", "stacks"},
                                                  {"MTRACE_RESOLVER", memlog_tool()},
                                                  {"MTRACE_EXIT_WAIT", "600"}})));
  process.write("go\n");
  const Result result = expect_exit(process.wait());
  const Memlog log = only_log(result.pid);
  EXPECT_EQ(sites_of(log, "unknown-free"),
            (Sites{{"site_frees_unknown", {0, 6}}, {"site_resizes_unknown", {0, 1}}}));
  EXPECT_EQ(log.number("unknown-frees"), 7);
}

// Nothing of it without the option, nor where not every block is known.
TEST_F(UnknownTest, OnlyOnRequest) {
  for (const char* sample : {"0", "64"}) {
    Command command = named({program("strange_frees")});
    if (*sample != '0') command.env["MTRACE_UNKNOWN"] = "stacks";
    command.env["MTRACE_SAMPLE"] = sample;
    EXPECT_FALSE(only_log(expect_exit(run(command)).pid).has("kind")) << sample;
  }
}

// Threads that allocate and free meanwhile lose nothing.
TEST_F(UnknownTest, TotalsStayExact) {
  const Result result = expect_exit(
      run(traced({program("truth_threads"), "signals"}, {{"MTRACE_UNKNOWN", "stacks"}})));
  for (const Memlog& log : logs_of(result.pid)) {
    EXPECT_EQ(log.number("unknown-frees"), 0);
    EXPECT_EQ(sites_of(log, "unknown-free"), (Sites{}));
  }
}

}  // namespace
}  // namespace mtrace::test
