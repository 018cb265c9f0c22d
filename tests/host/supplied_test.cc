// A program that supplies the pages of its memory itself (userfaultfd): whoever touches a page that
// is not there waits for a thread of the program, and for ever if that is the thread.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "host_test.h"

namespace mtrace::test {
namespace {

using nlohmann::json;

class SuppliedTest : public HostTest {
 protected:
  // The program under `command`, once it says "ready"; nothing: it may not use userfaultfd.
  static bool is_ready(Process& host) {
    const auto line = host.read_line();
    EXPECT_TRUE(line == "ready" || line == "no userfaultfd") << line.value_or("nothing");
    return line == "ready";
  }
  static void touch(Process& host) {
    host.write("\n");
    EXPECT_EQ(host.read_line(), "touched");
  }
  static void finish(Process& host) {
    host.close_input();
    EXPECT_EQ(host.read_line(), "done");
    EXPECT_EQ(host.wait().how(), "exit 3");
  }
  Command command() const { return traced({program("supplied_pages")}, {{"MTRACE_MMAP", "1"}}); }
};

#define SKIP_WITHOUT_USERFAULTFD(host)                                              \
  if (!is_ready(host)) {                                                            \
    GTEST_SKIP() << "userfaultfd needs root or vm.unprivileged_userfaultfd=1 here"; \
  }

// The thread that supplies the pages takes the signal.
TEST_F(SuppliedTest, ASignalToTheThreadThatSupplies) {
  Process host(command());
  SKIP_WITHOUT_USERFAULTFD(host);
  for (int seq = 1; seq <= 5; ++seq) {
    host.send(SIGUSR1);
    wait_for_report("supplied_pages", host.pid(), seq);
    touch(host);
  }
  finish(host);
  EXPECT_HAS(read_file(report_path("supplied_pages", host.pid(), 1)), " um\n");
}

TEST_F(SuppliedTest, ReportsOfABorrowedThread) {
  Process host(command());
  SKIP_WITHOUT_USERFAULTFD(host);
  for (int i = 0; i < 10; ++i) {
    expect_exit(memlog({"report", host.id()}));
    touch(host);
  }
  finish(host);
}

TEST_F(SuppliedTest, WhatMemlogReadsOfOthers) {
  Command with_ledger = command();
  with_ledger.env["MTRACE_LEDGER"] = temp() + "/";
  Process host(with_ledger);
  SKIP_WITHOUT_USERFAULTFD(host);
  touch(host);
  const std::string pid = host.id();
  expect_exit(memlog({"map", pid}));
  touch(host);
  // 4,096 pages of each of three mappings, of which 3,495 + 2 are there.
  const json found = json::parse(memlog({"unreachable", "--json", pid}).out);
  EXPECT_EQ(found["missing_bytes"], 3 * (4096 - 3497) * 4096);
  EXPECT_EQ(found["definitely_lost_blocks"], 0);
  touch(host);
  Process expire(tool({"expire", "--after", "100ms", "--max-expired", "1", pid}));
  expire.read_line();
  touch(host);
  EXPECT_EQ(expire.wait().how(), "exit 0");
  finish(host);
}

TEST_F(SuppliedTest, AttachAndDetach) {
  Process host(plain({program("supplied_pages")}));
  SKIP_WITHOUT_USERFAULTFD(host);
  const std::string pid = host.id();
  for (int i = 0; i < 3; ++i) {
    expect_exit(memlog({"attach", pid}));
    touch(host);
    expect_exit(memlog({"report", pid}));
    touch(host);
    expect_exit(memlog({"detach", pid}));
    touch(host);
  }
  finish(host);
}

TEST_F(SuppliedTest, RunWithRegularReportsAndASearchAtExit) {
  Process host(plain({memlog_tool(), "run", "--unreachable", "--every", "100ms", "-o", out(), "--",
                      "env", "MTRACE_MMAP=1", program("supplied_pages")}));
  SKIP_WITHOUT_USERFAULTFD(host);
  for (int i = 0; i < 200; ++i) touch(host);
  finish(host);
}

}  // namespace
}  // namespace mtrace::test
