// memlog merge on reports of a program that knows what it holds.
#include "host_test.h"

namespace mtrace::test {
namespace {

class MergedTest : public HostTest {
 protected:
  // Runs the program and merges all but the newest `keep` of its four reports.
  Memlog merged(int keep) {
    const Result result = expect_exit(run(traced({program("merged")}, {{"MTRACE_MMAP", "1"}})));
    last_ = logs_of(result.pid).at(static_cast<size_t>(3 - keep));
    expect_exit(memlog({"merge", "--keep", std::to_string(keep), out()}));
    return logs_of(result.pid).at(0);
  }
  static std::vector<Entry> with(const Memlog& log, const std::string& kind, const char* call) {
    std::vector<Entry> found;
    for (const Entry& entry : log.entries) {
      if (entry.kind == kind && entry.call == call) found.push_back(entry);
    }
    return found;
  }

  Memlog last_;  // of those that were merged, as it was
};

TEST_F(MergedTest, EachCallOfAStackKeepsWhatItHolds) {
  const Memlog log = merged(2);
  EXPECT_EQ(log.get("merged"), "1 to 2");
  const auto aligned = with(log, "", "aligned_alloc");
  const auto zeroed = with(log, "", "calloc");
  ASSERT_EQ(aligned.size(), 1u);
  ASSERT_EQ(zeroed.size(), 1u);
  EXPECT_EQ(aligned[0].stack, zeroed[0].stack);
  EXPECT_EQ(aligned[0].live, 40960);
  EXPECT_EQ(zeroed[0].live, 3500);
  EXPECT_EQ(zeroed[0].bytes, 3500);
  EXPECT_EQ(zeroed[0].blocks, 2);
}

// Report 2 lists one of the stack's entries, and the process had no new peak.
TEST_F(MergedTest, SharesAddUpToThePeak) {
  const Memlog log = merged(2);
  int64_t shares = 0;
  for (const Entry& entry : log.entries) {
    if (entry.kind.empty()) shares += entry.count("peak");
  }
  EXPECT_EQ(shares, 143960);
  EXPECT_EQ(std::stoll(log.get("peak")), 143960);
}

// The same in a sum that nobody merged.
TEST_F(MergedTest, ASumHasTheSharesOfAllCalls) {
  const Result result = expect_exit(run(traced({program("merged")})));
  Words arguments = {"export", "--format", "csv", "--no-resolve"};
  for (const Memlog& log : logs_of(result.pid)) arguments.push_back(log.path);
  EXPECT_HAS(memlog(arguments).out, ",43960,\"aligned_alloc,calloc\",");
}

TEST_F(MergedTest, EachFormOfAMappingKeepsWhatItHolds) {
  const Memlog log = merged(1);
  EXPECT_EQ(log.get("merged"), "1 to 3");
  std::map<std::string, int64_t> held;
  std::set<std::string> stacks;
  for (const Entry& entry : with(log, "mmap", "mmap")) {
    EXPECT_EQ(entry.live, entry.bytes);
    held[entry.mapped] += entry.live;
    stacks.insert(entry.stack);
  }
  const std::map<std::string, int64_t> expected = {{"rw- private,anonymous", 327680},
                                                   {"r-- private,anonymous", 196608}};
  EXPECT_EQ(held, expected);
  EXPECT_EQ(stacks.size(), 1u);
}

// What was resident is a state: the last report tells it.
TEST_F(MergedTest, HasTheRegionsOfTheLastReport) {
  const Memlog log = merged(1);
  EXPECT_FALSE(log.all("region").empty());
  EXPECT_EQ(log.all("region"), last_.all("region"));
}

}  // namespace
}  // namespace mtrace::test
