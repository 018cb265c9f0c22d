// Each way in which a process can end, and the report it leaves: the last thing that happens, after
// every handler and destructor that still gives memory back.
#include "host_test.h"

namespace mtrace::test {
namespace {

// Before any handler or destructor.
const Sites kAll = {{"site_atexit", {1001, 1}},
                    {"site_static", {1002, 1}},
                    {"site_destructor", {1003, 1}},
                    {"site_quick", {1004, 1}},
                    {"site_kept", {1005, 1}}};

class ExitTest : public HostTest {
 protected:
  // Runs programs/exits.cc; returns its memlogs.
  std::vector<Memlog> leave(const std::string& mode, int status) {
    return logs_of(expect_exit(expect_same(traced({program("exits"), mode})), status).pid);
  }
  static Sites sites(const std::vector<Memlog>& logs) {
    return site_sums(logs, program("exits"), program("exits"));
  }
  void expect_report(const std::string& mode, int status, const Sites& held) {
    SCOPED_TRACE(mode);
    const std::vector<Memlog> logs = leave(mode, status);
    ASSERT_EQ(logs.size(), 1u);
    EXPECT_EQ(logs[0].get("trigger"), "exit");
    EXPECT_EQ(sites(logs), held);
  }
};

// Those that run handlers and destructors: all they gave back is gone, what they made is there.
TEST_F(ExitTest, OrderlyEnds) {
  const Sites left = {
      {"site_quick", {1004, 1}}, {"site_kept", {1005, 1}}, {"site_late", {1006, 1}}};
  for (const auto& [mode, status] :
       {std::pair{"return", 11}, std::pair{"exit", 12}, std::pair{"pthread_exit", 0},
        std::pair{"exit_in_thread", 16}}) {
    expect_report(mode, status, left);
  }
}

TEST_F(ExitTest, ImmediateEnds) {
  for (const auto& [mode, status] :
       {std::pair{"_exit", 13}, std::pair{"_Exit", 14}, std::pair{"_exit_in_thread", 17}}) {
    expect_report(mode, status, kAll);
  }
}

TEST_F(ExitTest, QuickExit) {
  Sites left = kAll;
  left.erase("site_quick");
  expect_report("quick_exit", 15, left);
}

// These leave no report, and what kills the program is what killed it without the library.
TEST_F(ExitTest, EndsWithoutReport) {
  EXPECT_EQ(leave("exit_group", 18).size(), 0u);
  for (const auto& [mode, signal] :
       std::vector<std::pair<std::string, int>>{{"abort", SIGABRT}, {"killed", SIGTERM}}) {
    const Result result = run(traced({program("exits"), mode}));
    EXPECT_EQ(result.how(), "signal " + std::to_string(signal));
    EXPECT_EQ(logs_of(result.pid).size(), 0u) << mode;
  }
}

// libc ends the parent by a call of its own. The daemon ends some time later.
TEST_F(ExitTest, Daemon) {
  Process process(traced({program("exits"), "daemon"}));
  const pid_t daemon = std::stoi(process.read_line().value_or("0"));
  EXPECT_EQ(process.read_line(), "leads");
  expect_exit(process.wait());
  const std::vector<Memlog> logs = logs_of(process.pid(), 1);
  EXPECT_EQ(logs[0].get("trigger"), "exit");
  EXPECT_EQ(sites(logs), kAll);
  wait_for_report("exits", daemon, 1);
  const Memlog log = only_log(daemon);
  EXPECT_EQ(log.get("trigger"), "exit");
  EXPECT_EQ(log.number("parent"), process.pid());
}

TEST_F(ExitTest, DaemonThatCannotFork) {
  const std::vector<Memlog> logs = leave("daemon_fails", 20);
  ASSERT_EQ(logs.size(), 1u);
  EXPECT_TRUE(sites(logs).contains("site_late"));
}

// A vfork child that ends is not the end of its parent, whose memory it used.
TEST_F(ExitTest, VforkChild) {
  ASSERT_EQ(leave("vfork", 19).size(), 1u);
  EXPECT_EQ(all_logs().size(), 1u);
}

// exec ends the program without a report; the next program has the same pid and its own.
TEST_F(ExitTest, Exec) {
  const Result result = expect_exit(run(traced({program("exits"), "exec"})));
  const auto logs = all_logs();
  ASSERT_EQ(logs.size(), 1u);
  EXPECT_EQ(logs.begin()->first, "true-" + std::to_string(result.pid));
}

TEST_F(ExitTest, ReportCanBeSwitchedOff) {
  for (const char* mode : {"return", "_exit", "quick_exit"}) {
    run(traced({program("exits"), mode}, {{"MTRACE_EXIT_REPORT", "0"}}));
  }
  EXPECT_TRUE(all_logs().empty());
}

}  // namespace
}  // namespace mtrace::test
