// memlog report and memlog status, on processes that are traced, not traced, and not followed.
#include <signal.h>

#include <filesystem>

#include "host_test.h"

namespace mtrace::test {
namespace {

class ReportCommandTest : public HostTest {
 protected:
  Result memlog(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), memlog_tool());
    return run(plain(arguments));
  }
};

// The path of a report that is complete and named.
TEST_F(ReportCommandTest, PrintsThePathOfTheNamedReport) {
  Process process(named({program("idle"), "read"}));
  process.read_until("ready");
  for (int seq = 1; seq <= 3; ++seq) {
    const Result result = expect_exit(memlog(
        {"report", "--label", "round " + std::to_string(seq), std::to_string(process.pid())}));
    ASSERT_EQ(lines_of(result.out).size(), 1u) << result.out << result.err;
    // Absolute, or relative to where memlog runs.
    EXPECT_EQ(std::filesystem::weakly_canonical(std::filesystem::path(temp()) /
                                                (lines_of(result.out)[0])),
              report_path("idle", process.pid(), seq));
    const Memlog log = read_memlog(report_path("idle", process.pid(), seq));
    EXPECT_EQ(log.get("resolved"), "yes");
    EXPECT_EQ(log.get("label"), "round " + std::to_string(seq));
  }
  process.write("x");
  expect_exit(process.wait());
}

// A program that is not preloaded would die of the signal: it is not sent.
TEST_F(ReportCommandTest, NeverSignalsAnotherProcess) {
  Process process(plain({program("idle"), "read"}));
  process.read_until("ready");
  const Result report = memlog({"report", std::to_string(process.pid())});
  EXPECT_FALSE(report.exited(0));
  EXPECT_NE(report.err, "");
  const Result status = memlog({"status", std::to_string(process.pid())});
  EXPECT_NE(status.out + status.err, "");
  process.write("x");
  EXPECT_TRUE(process.wait().exited(0)) << "it lives";
}

TEST_F(ReportCommandTest, ProgramThatTookTheSignal) {
  Process process(traced({"/usr/bin/perl", "-e",
                          "$SIG{USR1} = sub { print qq(own\\n) }; $| = 1; print qq(ready\\n); "
                          "my $x = <STDIN>; print qq(end\\n)"}));
  process.read_until("ready");
  const Result report =
      expect_exit(memlog({"report", "--label", "asked without", std::to_string(process.pid())}));
  EXPECT_EQ(read_memlog(report_path("perl", process.pid(), 1)).get("label"), "asked without");
  const Result status = memlog({"status", std::to_string(process.pid())});
  EXPECT_HAS((status.out + status.err), "perl");
  process.write("x\n");
  const Result result = process.wait();
  EXPECT_EQ(result.out, "ready\nend\n") << "its handler did not run";
}

TEST_F(ReportCommandTest, StatusOfATracedProcess) {
  Process process(traced({program("idle"), "read"}));
  process.read_until("ready");
  process.send(SIGUSR1);
  wait_for_report("idle", process.pid(), 1);
  const Result status = expect_exit(memlog({"status", std::to_string(process.pid())}));
  for (const std::string& word :
       {std::to_string(process.pid()), std::string("idle"), std::string("USR1"), out()}) {
    EXPECT_HAS(status.out, word) << word << " in:\n";
  }
  process.write("x");
  process.wait();
}

TEST_F(ReportCommandTest, NoSuchProcess) {
  EXPECT_FALSE(memlog({"report", "999999999"}).exited(0));
  EXPECT_FALSE(memlog({"report", "no-such-program-anywhere"}).exited(0));
}

}  // namespace
}  // namespace mtrace::test
