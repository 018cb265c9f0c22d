// Each way in which a process can end, and the report it leaves: the last thing that happens, after
// every handler and destructor that still gives memory back.
#include <signal.h>

#include "host_test.h"

namespace mtrace::test {
namespace {

using Sites = std::map<std::string, Amount>;

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
    const Result with = run(traced({program("exits"), mode}));
    const Result without = run(plain({program("exits"), mode}));
    EXPECT_EQ(with.status, without.status) << mode << ": " << with.how();
    EXPECT_TRUE(with.exited(status)) << mode << ": " << with.how() << with.err;
    EXPECT_EQ(with.out + with.err, without.out + without.err) << mode;
    return logs_of(with.pid);
  }
  static Sites sites(const std::vector<Memlog>& logs) {
    return site_sums(logs, program("exits"), program("exits"));
  }
};

// Those that run handlers and destructors: all they gave back is gone, what they made is there.
TEST_F(ExitTest, OrderlyEnds) {
  const std::vector<std::pair<std::string, int>> kModes = {
      {"return", 11}, {"exit", 12}, {"pthread_exit", 0}, {"exit_in_thread", 16}};
  for (const auto& [mode, status] : kModes) {
    const std::vector<Memlog> logs = leave(mode, status);
    ASSERT_EQ(logs.size(), 1u) << mode;
    EXPECT_EQ(logs[0].get("trigger"), "exit");
    EXPECT_EQ(
        sites(logs),
        (Sites{{"site_quick", {1004, 1}}, {"site_kept", {1005, 1}}, {"site_late", {1006, 1}}}))
        << mode << "\n"
        << describe(sites(logs));
  }
}

TEST_F(ExitTest, ImmediateEnds) {
  const std::vector<std::pair<std::string, int>> kModes = {
      {"_exit", 13}, {"_Exit", 14}, {"_exit_in_thread", 17}};
  for (const auto& [mode, status] : kModes) {
    const std::vector<Memlog> logs = leave(mode, status);
    ASSERT_EQ(logs.size(), 1u) << mode;
    EXPECT_EQ(logs[0].get("trigger"), "exit");
    EXPECT_EQ(sites(logs), kAll) << mode << "\n" << describe(sites(logs));
  }
}

TEST_F(ExitTest, QuickExit) {
  const std::vector<Memlog> logs = leave("quick_exit", 15);
  ASSERT_EQ(logs.size(), 1u);
  EXPECT_EQ(sites(logs), (Sites{{"site_atexit", {1001, 1}},
                                {"site_static", {1002, 1}},
                                {"site_destructor", {1003, 1}},
                                {"site_kept", {1005, 1}}}))
      << describe(sites(logs));
}

// These leave no report, and what kills the program is what killed it without the library.
TEST_F(ExitTest, EndsWithoutReport) {
  EXPECT_EQ(leave("exit_group", 18).size(), 0u);
  for (const auto& [mode, signal] :
       std::vector<std::pair<std::string, int>>{{"abort", SIGABRT}, {"killed", SIGTERM}}) {
    const Result result = run(traced({program("exits"), mode}));
    EXPECT_TRUE(WIFSIGNALED(result.status) && WTERMSIG(result.status) == signal) << result.how();
    EXPECT_EQ(logs_of(result.pid).size(), 0u) << mode;
  }
}

// libc ends the parent by a call of its own. The daemon ends some time later.
TEST_F(ExitTest, Daemon) {
  Process process(traced({program("exits"), "daemon"}));
  const pid_t daemon = std::stoi(process.read_line().value_or("0"));
  EXPECT_EQ(process.read_line(), "leads");
  expect_exit(process.wait());
  const std::vector<Memlog> logs = logs_of(process.pid());
  ASSERT_EQ(logs.size(), 1u);
  EXPECT_EQ(logs[0].get("trigger"), "exit");
  EXPECT_EQ(sites(logs), kAll) << describe(sites(logs));
  wait_for_report("exits", daemon, 1);
  const std::vector<Memlog> of_daemon = logs_of(daemon);
  ASSERT_EQ(of_daemon.size(), 1u);
  EXPECT_EQ(of_daemon[0].get("trigger"), "exit");
  EXPECT_EQ(of_daemon[0].number("parent"), process.pid());
}

TEST_F(ExitTest, DaemonThatCannotFork) {
  const std::vector<Memlog> logs = leave("daemon_fails", 20);
  ASSERT_EQ(logs.size(), 1u);
  EXPECT_TRUE(sites(logs).contains("site_late")) << describe(sites(logs));
}

// A vfork child that ends is not the end of its parent, whose memory it used.
TEST_F(ExitTest, VforkChild) {
  const std::vector<Memlog> logs = leave("vfork", 19);
  ASSERT_EQ(logs.size(), 1u);
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
    Command command = traced({program("exits"), mode});
    command.env["MTRACE_EXIT_REPORT"] = "0";
    run(command);
  }
  EXPECT_TRUE(all_logs().empty());
}

}  // namespace
}  // namespace mtrace::test
