// Programs that have the kernel hand over their system calls (prctl(2),
// PR_SET_SYSCALL_USER_DISPATCH), as Wine does: none of the library's or of memlog's comes to them.
#include "host_test.h"

namespace mtrace::test {
namespace {

class DispatchTest : public HostTest {
 protected:
  void SetUp() override {
    const Result result = run(plain({program("dispatches")}));
    if (result.exited(77)) GTEST_SKIP() << "this kernel has no syscall user dispatch";
    EXPECT_EQ(result.out, kOut);
  }
  Command keeping_a_ledger() const {
    return traced({program("dispatches"), "wait"}, {{"MTRACE_LEDGER", temp() + "/"}});
  }
  // Waits until it hands over its calls, asks by `ask`, and has it go on, twice.
  template <typename Ask>
  void expect_unhurt(const Command& command, const Ask& ask) {
    Process process(command);
    for (int times = 0; times < 2; ++times) {
      process.read_until("ready");
      ask(process.pid());
      process.write("x");
    }
    const Result result = expect_exit(process.wait(), 5);
    EXPECT_TRUE(result.out.ends_with(kOut)) << result.out;
  }
  static constexpr char kOut[] = "handed over 100, unknown 0\n";
};

TEST_F(DispatchTest, Options) {
  for (const std::string option :
       {"MTRACE_ENTRIES=all", "MTRACE_LEDGER=1", "MTRACE_SAMPLE=64K", "MTRACE_MMAP=1",
        "MTRACE_FILL=0xa5", "MTRACE_UNKNOWN=stacks", "MTRACE_REPORT_ON_FATAL=1", "MTRACE_EVENTS=1",
        "MTRACE_UNWINDER=libunwind", "MTRACE_MAX_MEMORY=1M"}) {
    SCOPED_TRACE(option);
    EXPECT_EQ(expect_exit(run(named({program("dispatches")}, setting(option))), 5).out, kOut);
  }
}

// At its end the program can write no report, but its ledger has all.
TEST_F(DispatchTest, UnderMemlogRun) {
  const std::string reports = temp() + "/reports/";
  fs::create_directory(reports);
  for (const std::string how : {"--quiet", "--every=100ms", "--events"}) {
    SCOPED_TRACE(how);
    const Result result = expect_exit(run(plain({memlog_tool(), "run", "--quiet", "--output",
                                                 reports, how, "--", program("dispatches")})),
                                      5);
    EXPECT_EQ(result.out, kOut);
  }
  EXPECT_EQ(names_in(reports, "-recovered.memlog").size(), 3u);
}

TEST_F(DispatchTest, SignalIsIgnored) {
  expect_unhurt(traced({program("dispatches"), "wait"}), [](pid_t pid) { ::kill(pid, SIGUSR1); });
  EXPECT_TRUE(all_logs().empty());
}

TEST_F(DispatchTest, MemlogLeavesItAlone) {
  expect_unhurt(traced({program("dispatches"), "wait"}), [&](pid_t pid) {
    EXPECT_HAS(expect_exit(memlog({"report", std::to_string(pid)}), 1).err,
               "syscall user dispatch");
  });
  expect_unhurt(plain({program("dispatches"), "wait"}), [&](pid_t pid) {
    EXPECT_HAS(expect_exit(memlog({"attach", std::to_string(pid)}), 1).err,
               "syscall user dispatch");
  });
}

// Asked through the ledger, a thread that hands over nothing writes the report.
TEST_F(DispatchTest, AnotherThreadReports) {
  expect_unhurt(keeping_a_ledger(), [&](pid_t pid) {
    expect_exit(memlog({"report", std::to_string(pid)}));
  });
  EXPECT_EQ(logs_of("dispatches").size(), 2u);
}

// Calls from the libraries are let through: nothing is given up.
TEST_F(DispatchTest, WithTheLibraryInItsRange) {
  const Result result = expect_exit(run(named({program("dispatches"), "range"})), 5);
  EXPECT_EQ(result.out, kOut);
  EXPECT_EQ(logs_of(result.pid).size(), 2u);
}

}  // namespace
}  // namespace mtrace::test
