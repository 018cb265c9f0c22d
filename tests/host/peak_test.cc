// The peak where threads, looks from outside and forks make it hard: within what the report says of
// its error.
#include <cstring>

#include "host_test.h"

namespace mtrace::test {
namespace {

int64_t first_number(const std::string& text) { return text.empty() ? 0 : std::stoll(text); }

class PeakTest : public HostTest {
 protected:
  Result peaks(const std::string& mode) const {
    Result result = run(traced({program("peaks"), mode}));
    expect_exit(result);
    return result;
  }
  // The program's own buffers and what libc keeps for threads.
  static constexpr int64_t kBeside = 100'000;
  static void expect_peak(const Memlog& log, int64_t truth, int64_t beside) {
    const int64_t peak = first_number(log.get("peak"));
    EXPECT_LE(std::abs(peak - truth), first_number(log.get("peak-error")) + beside) << log.path;
  }
};

TEST_F(PeakTest, IsWithinItsErrorWhenThreadsComeLater) {
  const Result result = peaks("limits");
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_FALSE(logs.empty());
  expect_peak(logs[0], first_number(result.out.substr(strlen("peak "))), 0);
}

TEST_F(PeakTest, DoesNotRiseBecauseItIsLookedAt) {
  const Result result = peaks("alternate");
  for (const Memlog& log : logs_of(result.pid)) {
    expect_peak(log, first_number(result.out.substr(strlen("peak "))), kBeside);
  }
}

// A report that tells another peak than the one before has every stack's share in it.
TEST_F(PeakTest, SharesAddUpWheneverItMoves) {
  for (const char* listed : {"active", "net", "all"}) {
    SCOPED_TRACE(listed);
    const Result result =
        expect_exit(run(traced({program("peaks"), "course"}, {{"MTRACE_ENTRIES", listed}})));
    int64_t before = 0;
    int moved = 0;
    const std::vector<Memlog> logs = logs_of(result.pid);
    for (const Memlog& log : logs) {
      const int64_t peak = first_number(log.get("peak"));
      int64_t shares = 0;
      for (const Entry& entry : log.entries) shares += entry.count("peak");
      EXPECT_EQ(shares, peak != before ? peak : shares) << log.path << ": " << before;
      moved += peak != before;
      before = peak;
      EXPECT_GE(peak, log.amount("live").bytes) << log.path;
      expect_peak(log, 10'000'000, 1000 + kBeside);
    }
    EXPECT_GE(moved, 2) << "every report found the peak of the first";
    Words words = {memlog_tool(), "show", "--peak", "--sum"};
    for (const Memlog& log : logs) words.push_back(log.path);
    EXPECT_HAS(run(plain(words)).out, "at the peak 10000000 bytes (99");
  }
}

TEST_F(PeakTest, OfAChildIsItsOwn) {
  const Result result = peaks("fork");
  const std::vector<Memlog> logs =
      logs_of(static_cast<pid_t>(first_number(result.out.substr(strlen("child ")))));
  ASSERT_FALSE(logs.empty());
  EXPECT_EQ(first_number(logs[0].get("peak")), logs[0].amount("inherited").bytes + 400);
  EXPECT_EQ(first_number(logs[0].get("peak")), logs[0].amount("live").bytes);
}

// MTRACE_REPORT_AT, in a program that grows to 64 MiB block by block of 64 KiB, shrinks to nothing
// and grows to half as much. What it holds besides is less than `kSlack`, with what threads have
// not told each other.
class ReportAtTest : public HostTest, public ::testing::WithParamInterface<const char*> {
 protected:
  static constexpr int64_t kMib = 1 << 20;
  static constexpr int64_t kSlack = kMib / 2;

  // The reports but the last, which is that of the exit; each has this trigger.
  std::vector<Memlog> reports(const std::string& moment, const std::string& trigger) const {
    const Result result = expect_exit(
        run(traced({program("grows"), "64", GetParam()}, {{"MTRACE_REPORT_AT", moment}})));
    EXPECT_EQ(result.err, "");
    std::vector<Memlog> logs = logs_of(result.pid);
    if (logs.empty()) throw std::runtime_error("no report");
    EXPECT_EQ(logs.back().get("trigger"), "exit");
    logs.pop_back();
    for (const Memlog& log : logs) EXPECT_EQ(log.get("trigger"), trigger) << log.path;
    return logs;
  }
};

TEST_P(ReportAtTest, EachPeakThatIsAnEighthHigher) {
  int64_t last = 0;
  for (const Memlog& log : reports("peak", "peak")) {
    const int64_t live = log.amount("live").bytes;
    EXPECT_GE(live + kSlack, last + std::max(last / 8, kMib)) << log.path;
    EXPECT_LE(live, last + std::max(last / 8, kMib) + kSlack) << log.path;
    last = live;
  }
  EXPECT_GE(last + kSlack, 64 * kMib * 8 / 9);
  EXPECT_LE(last, 64 * kMib + kSlack);
}

TEST_P(ReportAtTest, GrowthByAnAmount) {
  const std::vector<Memlog> logs = reports("+10M", "growth");
  ASSERT_EQ(logs.size(), 6u);
  for (size_t i = 0; i < logs.size(); ++i) {
    const int64_t over = logs[i].amount("live").bytes - static_cast<int64_t>(i + 1) * 10 * kMib;
    EXPECT_GE(over + kSlack, 0) << i;
    EXPECT_LE(over, static_cast<int64_t>(i + 1) * kSlack) << i;
  }
}

TEST_P(ReportAtTest, ResidentMemory) {
  const std::vector<Memlog> logs = reports("rss:40M", "rss");
  ASSERT_FALSE(logs.empty());
  EXPECT_GE(first_number(logs[0].get("rss")), 40 * kMib);
  EXPECT_LE(first_number(logs[0].get("rss")), 44 * kMib)
      << "long before the program is at its largest";
  for (size_t i = 1; i < logs.size(); ++i) {
    EXPECT_GE(first_number(logs[i].get("rss")), first_number(logs[i - 1].get("rss")) + 2 * kMib)
        << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, ReportAtTest, ::testing::Values("0", "4"));

}  // namespace
}  // namespace mtrace::test
