// The peak where threads, looks from outside and forks make it hard: within what the report says of
// its error.
#include <cstdlib>
#include <cstring>

#include "host_test.h"

namespace mtrace::test {
namespace {

int64_t first_number(const std::string& text) { return text.empty() ? 0 : std::stoll(text); }

class PeakTest : public HostTest {
 protected:
  Result peaks(const std::string& mode) const {
    Result result = run(traced({program("peaks"), mode}));
    EXPECT_TRUE(result.exited(0)) << result.how() << "\n" << result.err;
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

TEST_F(PeakTest, OfAChildIsItsOwn) {
  const Result result = peaks("fork");
  const std::vector<Memlog> logs =
      logs_of(static_cast<pid_t>(first_number(result.out.substr(strlen("child ")))));
  ASSERT_FALSE(logs.empty());
  EXPECT_EQ(first_number(logs[0].get("peak")), logs[0].amount("inherited").bytes + 400);
  EXPECT_EQ(first_number(logs[0].get("peak")), logs[0].amount("live").bytes);
}

}  // namespace
}  // namespace mtrace::test
