// The numbers of descriptors are the host's: a thread that closes 0 and opens a file gets 0,
// whatever the library opens meanwhile, and nobody closes it or writes to it. `make soak` sets
// MTRACE_SOAK_SECONDS, for more rounds.
#include <cstdio>
#include <cstdlib>

#include "host_test.h"

namespace mtrace::test {
namespace {

class DescriptorTest : public HostTest {
 protected:
  static std::string rounds() {
    const char* const seconds = std::getenv("MTRACE_SOAK_SECONDS");
    return std::to_string(40'000 + (seconds != nullptr ? std::atol(seconds) * 5'000 : 0));
  }
  // `reports`: at least so many, with no number left out.
  void expect_own_numbers(const Command& command, size_t reports) {
    const Result result = run(command);
    EXPECT_TRUE(result.exited(0)) << result.how() << result.err;
    EXPECT_EQ(result.out, "0 missed, 0 closed, 0 bytes\n");
    const std::vector<Memlog> logs = logs_of("lowest");
    EXPECT_GE(logs.size(), reports);
    for (size_t i = 0; i < logs.size(); ++i) EXPECT_EQ(logs[i].get("seq"), std::to_string(i + 1));
  }
};

constexpr size_t kReports = 41;  // with that at exit

TEST_F(DescriptorTest, WithoutTheLibrary) {
  EXPECT_EQ(run(plain({program("lowest"), "40000"})).out, "0 missed, 0 closed, 0 bytes\n");
}

TEST_F(DescriptorTest, WhileReportsAreWritten) {
  expect_own_numbers(traced({program("lowest"), rounds()}), kReports);
}

TEST_F(DescriptorTest, WhileReportsAreNamed) {
  expect_own_numbers(named({program("lowest"), rounds()}), kReports);
}

// A filter lets no thread be made, so the library has the program's descriptors. A report whose
// file the program closes is written again.
TEST_F(DescriptorTest, ReportsWhoseFilesAreClosed) {
  Command command = traced({program("closes_files")});
  command.env["MTRACE_ENTRIES"] = "all";
  const Result result = run(command);
  EXPECT_TRUE(result.exited(0)) << result.how() << result.err;
  int asked = 0;
  int closed = 0;
  ASSERT_EQ(std::sscanf(result.out.c_str(), "%d reports, %d closed", &asked, &closed), 2);
  EXPECT_GE(closed, 5);
  EXPECT_EQ(logs_of(result.pid).size(), static_cast<size_t>(asked) + 1);
}

class DescriptorModeTest : public DescriptorTest,
                           public ::testing::WithParamInterface<const char*> {};

TEST_P(DescriptorModeTest, WhileItCounts) {
  Command command = traced({program("lowest"), rounds()});
  const std::string option = GetParam();
  const size_t equals = option.find('=');
  command.env[option.substr(0, equals)] = option.substr(equals + 1);
  expect_own_numbers(command, kReports);
}

INSTANTIATE_TEST_SUITE_P(Options, DescriptorModeTest,
                         ::testing::Values("MTRACE_LEDGER=1", "MTRACE_SAMPLE=64K", "MTRACE_MMAP=1",
                                           "MTRACE_EVENTS=1"));

class DescriptorRunTest : public DescriptorTest,
                          public ::testing::WithParamInterface<const char*> {};

TEST_P(DescriptorRunTest, UnderMemlogRun) {
  Command command = plain({memlog_tool(), "run", "--quiet", "--no-compress", "--output", out(),
                           GetParam(), "--", program("lowest"), rounds()});
  command.directory = temp();
  expect_own_numbers(command, kReports);
}

INSTANTIATE_TEST_SUITE_P(Ways, DescriptorRunTest, ::testing::Values("--every=100ms", "--events"));

}  // namespace
}  // namespace mtrace::test
