// The peak against an independent tool: valgrind's DHAT, which finds it exactly.
#include "host_test.h"

namespace mtrace::test {
namespace {

using PeakToolsTest = HostTest;

// "Total:     3,733,361 bytes in 11,016 blocks" of what DHAT says on stderr.
Amount dhat_amount(std::string text, const std::string& what) {
  std::erase(text, ',');
  const Match match = first_match(text, what + ":? +([0-9]+) bytes in ([0-9]+) blocks");
  if (match.empty()) return {};
  return {std::stoll(match[1]), std::stoll(match[2])};
}

TEST_F(PeakToolsTest, DhatAgreesToTheByte) {
  const Words argv = {program("model"), "7", "1", "20000", "0"};
  const Memlog log = logs_of(expect_exit(run(traced(argv))).pid).back();
  const Result other = expect_exit(
      run(plain(joined({"/usr/bin/valgrind", "--tool=dhat", "--dhat-out-file=/dev/null"}, argv))));
  const Amount peak = dhat_amount(other.err, "At t-gmax");
  ASSERT_GT(peak.bytes, 0) << other.err;
  EXPECT_EQ(log.number("peak"), peak.bytes);
  EXPECT_EQ(log.amount("allocated"), dhat_amount(other.err, "Total"));
  EXPECT_FALSE(log.has("peak-error"));
}

}  // namespace
}  // namespace mtrace::test
