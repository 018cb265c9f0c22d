// The numbers of descriptors are the host's: a thread that closes 0 and opens a file gets 0,
// whatever the library opens meanwhile, and nobody closes it or writes to it.
#include <cstdio>

#include "host_test.h"

namespace mtrace::test {
namespace {

constexpr size_t kReports = 8;

class DescriptorTest : public HostTest {
 protected:
  // A report of its 1,024 stacks has up to 1 MB: few are for each check.
  static Words lowest() {
    return {program("lowest"), std::to_string(40'000 * longer()),
            std::to_string(kReports * static_cast<size_t>(longer()))};
  }
  // It has at least its reports, with no number left out.
  void expect_own_numbers(const Command& command) {
    EXPECT_EQ(expect_exit(run(command)).out, "0 missed, 0 closed, 0 bytes\n");
    const std::vector<Memlog> logs = logs_of("lowest");
    EXPECT_GT(logs.size(), kReports);  // with that at exit
    for (size_t i = 0; i < logs.size(); ++i) EXPECT_EQ(logs[i].get("seq"), std::to_string(i + 1));
  }
};

TEST_F(DescriptorTest, WithoutTheLibrary) {
  EXPECT_EQ(run(plain(lowest())).out, "0 missed, 0 closed, 0 bytes\n");
}

TEST_F(DescriptorTest, WhileReportsAreWritten) { expect_own_numbers(traced(lowest())); }

TEST_F(DescriptorTest, WhileReportsAreNamed) { expect_own_numbers(named(lowest())); }

// A filter lets no thread be made, so the library has the program's descriptors. A report whose
// file the program closes is written again.
TEST_F(DescriptorTest, ReportsWhoseFilesAreClosed) {
  const Result result =
      expect_exit(run(traced({program("closes_files")}, {{"MTRACE_ENTRIES", "all"}})));
  int asked = 0;
  int closed = 0;
  ASSERT_EQ(std::sscanf(result.out.c_str(), "%d reports, %d closed", &asked, &closed), 2);
  EXPECT_GE(closed, 5);
  EXPECT_EQ(logs_of(result.pid).size(), static_cast<size_t>(asked) + 1);
}

class DescriptorModeTest : public DescriptorTest,
                           public ::testing::WithParamInterface<const char*> {};

TEST_P(DescriptorModeTest, WhileItCounts) {
  expect_own_numbers(traced(lowest(), setting(GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Options, DescriptorModeTest,
                         ::testing::Values("MTRACE_LEDGER=1", "MTRACE_SAMPLE=64K", "MTRACE_MMAP=1",
                                           "MTRACE_EVENTS=1"));

class DescriptorRunTest : public DescriptorTest,
                          public ::testing::WithParamInterface<const char*> {};

TEST_P(DescriptorRunTest, UnderMemlogRun) {
  expect_own_numbers(plain(joined(
      {memlog_tool(), "run", "--quiet", "--no-compress", "--output", out(), GetParam(), "--"},
      lowest())));
}

INSTANTIATE_TEST_SUITE_P(Ways, DescriptorRunTest, ::testing::Values("--every=1s", "--events"));

}  // namespace
}  // namespace mtrace::test
