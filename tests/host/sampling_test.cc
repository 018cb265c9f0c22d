// MTRACE_SAMPLE: estimates are unbiased, and as far from the truth as the report says.
#include <cmath>

#include "host_test.h"

namespace mtrace::test {
namespace {

// What a number of equal stacks were estimated to be.
struct Estimates {
  int count = 0;
  int covered = 0;    // truth within 1.96 standard errors
  double off = 0;     // sum of estimates less truth
  double square = 0;  // sum of the standard errors' squares

  void add(double estimate, double error, double truth) {
    ++count;
    covered += std::abs(estimate - truth) <= 1.96 * error;
    off += estimate - truth;
    square += error * error;
  }
};

class SamplingTest : public HostTest {
 protected:
  static constexpr int kStacks = 2000;
  static constexpr int kBlocks = 60;  // of each size a stack, and as many halves later
  static constexpr int kMean = 1000;

  Command sampled(std::vector<std::string> argv, const std::string& mean) const {
    Command command = traced(std::move(argv));
    command.env["MTRACE_SAMPLE"] = mean;
    command.env["MTRACE_ENTRIES"] = "all";  // also an estimate of no change
    return command;
  }
  std::vector<Memlog> known_answers(const std::string& mean) {
    const Result result =
        run(sampled({program("sampling"), std::to_string(kStacks), std::to_string(kBlocks)}, mean));
    EXPECT_TRUE(result.exited(0)) << result.how() << result.err;
    EXPECT_EQ(result.err, "");
    std::vector<Memlog> logs = logs_of(result.pid);
    EXPECT_EQ(logs.size(), 3u);
    logs.resize(3);
    return logs;
  }
  static bool of_program(const Entry& entry) {
    return !entry.frames.empty() && entry.frames[0].module == program("sampling");
  }
  static int64_t count(const Entry& entry, const char* key) {
    const auto found = entry.counts.find(key);
    return found == entry.counts.end() ? 0 : found->second;
  }
  // 95 of 100, give or take five standard deviations of what chance does to 2,000.
  static void expect_95_percent(const Estimates& all) {
    ASSERT_EQ(all.count, kStacks);
    EXPECT_GT(all.covered, kStacks * 0.925);
    EXPECT_LT(all.covered, kStacks * 0.975);
    EXPECT_LT(std::abs(all.off), 5 * std::sqrt(all.square)) << "biased";
  }
};

constexpr double kSizes[] = {0, 40, 700, 3000};

// Sum over the program's sizes of what each(size, chance) gives.
template <typename Each>
double sum_over_sizes(double mean, Each each) {
  double sum = 0;
  for (double size : kSizes) sum += each(size, -std::expm1(-(size + 1) / mean));
  return sum;
}

TEST_F(SamplingTest, IntervalsHoldTheTruthIn95Of100) {
  const std::vector<Memlog> logs = known_answers(std::to_string(kMean));
  const double bytes = kBlocks * sum_over_sizes(kMean, [](double size, double) { return size; });
  Estimates live;
  Estimates change;
  Estimates blocks;
  const double blocks_error =
      std::sqrt(kBlocks * sum_over_sizes(kMean, [](double, double p) { return (1 - p) / p; }));
  for (const Entry& entry : logs[0].entries) {
    if (!of_program(entry)) continue;
    live.add(entry.live, count(entry, "live-error"), bytes);
    change.add(entry.bytes, count(entry, "error"), bytes);
    blocks.add(entry.blocks, blocks_error, kBlocks * 4);
  }
  {
    SCOPED_TRACE("live");
    expect_95_percent(live);
  }
  {
    SCOPED_TRACE("change");
    expect_95_percent(change);
  }
  // Here by the true error: that of the estimate is dominated by how many blocks of 0 bytes it saw.
  EXPECT_LT(std::abs(blocks.off), 5 * std::sqrt(blocks.square));

  // Half are freed and as many made: nothing has changed, but that is not to be known exactly.
  Estimates second;
  for (const Entry& entry : logs[1].entries) {
    if (of_program(entry)) second.add(entry.bytes, count(entry, "error"), 0);
  }
  {
    SCOPED_TRACE("second change");
    expect_95_percent(second);
  }

  for (const Memlog& log : logs) EXPECT_EQ(log.get("sampled"), "1000 bytes");
  const auto within = [](double found, double error, double truth) {
    return std::abs(found - truth) <= 5 * error;
  };
  const Memlog& log = logs[1];
  EXPECT_PRED3(within, log.amount("live").bytes, log.number("live-error"), bytes * kStacks);
  EXPECT_PRED3(within, log.amount("delta").bytes, log.number("delta-error"), 0);
  EXPECT_PRED3(within, log.amount("allocated").bytes, 1.5 * log.number("live-error"),
               1.5 * bytes * kStacks);
  EXPECT_PRED3(within, log.amount("freed").bytes, log.number("live-error"), bytes * kStacks / 2);
  // All that is recorded is taken out again, with the weights with which it came.
  EXPECT_EQ(logs[2].amount("live"), Amount{});
  EXPECT_EQ(logs[2].get("live-error"), "0 bytes");
}

// One in so many is recorded, not one in each: with a mean far above what is allocated the report
// is small.
TEST_F(SamplingTest, RecordsFew) {
  const std::vector<Memlog> logs = known_answers("8M");
  const double bytes =
      kStacks * kBlocks * sum_over_sizes(1, [](double size, double) { return size; });
  const double expected = bytes / (8 << 20);  // 53 samples
  size_t stacks = 0;
  for (const Entry& entry : logs[0].entries) stacks += of_program(entry);
  EXPECT_GT(stacks, expected / 4);
  EXPECT_LT(stacks, expected * 3);
}

TEST_F(SamplingTest, LeavesOutWhatItDoesNotSee) {
  const std::vector<Memlog> logs = known_answers("8M");
  for (const Memlog& log : logs) {
    for (const char* key : {"calls", "failed-allocations", "unknown-frees"}) {
      EXPECT_FALSE(log.has(key)) << key;
    }
    EXPECT_NE(log.get("library").find("MTRACE_SAMPLE=8M"), std::string::npos);
  }
}

TEST_F(SamplingTest, WithoutItNothingIsSaidOfErrors) {
  const Result result = run(traced({program("sampling"), "10", "10"}));
  ASSERT_TRUE(result.exited(0));
  for (const Memlog& log : logs_of(result.pid)) {
    for (const char* key : {"sampled", "delta-error", "live-error"}) EXPECT_FALSE(log.has(key));
    for (const Entry& entry : log.entries) {
      EXPECT_EQ(entry.counts.count("error") + entry.counts.count("live-error"), 0u);
    }
  }
}

// With one sample a byte a block of 43 bytes is missed less often than once in 10^19: every entry
// point, also those that call each other, books each block once and takes it out once.
class EveryByteTest : public SamplingTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(EveryByteTest, IsTheTruth) {
  for (const char* name : {"truth_c.gcc.O2.pie.nofp", "truth_cxx.gcc.O2.pie.nofp"}) {
    const std::string path = program(name);
    Command command = sampled({path, "signals"}, "1");
    if (std::string(GetParam()).starts_with("libjemalloc")) command.env["TRUTH_LENIENT"] = "1";
    if (*GetParam() != '\0') command.env["LD_PRELOAD"] += std::string(":") + GetParam();
    const Result result = run(command);
    ASSERT_TRUE(result.exited(0)) << result.how() << result.out << result.err;
    const auto told = told_sites(result.out);
    const std::vector<Memlog> logs = logs_of(result.pid);
    ASSERT_EQ(logs.size(), told.size() + 1);
    std::map<std::string, Amount> before;
    for (size_t phase = 1; phase <= told.size(); ++phase) {
      auto expected = changes(before, told.at(static_cast<int>(phase)));
      auto found = site_sums({logs[phase - 1]}, path, path);
      for (auto* sites : {&expected, &found}) {
        std::erase_if(*sites, [](const auto& site) { return std::abs(site.second.bytes) < 43; });
      }
      EXPECT_EQ(expected, found) << "phase " << phase << "\ntold:\n"
                                 << describe(expected) << "found:\n"
                                 << describe(found);
      before = told.at(static_cast<int>(phase));
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, EveryByteTest,
                         ::testing::Values("", "libjemalloc.so.2", "libtcmalloc.so.4"),
                         [](const auto& info) {
                           const std::string name = info.param;
                           return name.empty() ? "glibc" : name.substr(3, name.find('.') - 3);
                         });

// Every second is freed by the other thread.
TEST_F(SamplingTest, ThreadsAndForks) {
  const std::vector<std::vector<std::string>> kPrograms = {
      {"truth_threads", "signals"}, {"churn", "20000"}, {"fork_busy"}};
  for (std::vector<std::string> argv : kPrograms) {
    SCOPED_TRACE(argv[0]);
    argv[0] = program(argv[0]);
    const Result result = run(sampled(argv, "2K"));
    EXPECT_TRUE(result.exited(0)) << result.how() << result.out << result.err;
  }
}

// Whatever a child does first, it is a process of its own by then.
TEST_F(SamplingTest, ResizeIsTheFirstOfAChild) {
  const Result result = run(sampled({program("fork_resize")}, "1"));
  ASSERT_TRUE(result.exited(0)) << result.how() << result.out << result.err;
  const std::vector<Memlog> logs = logs_of(std::stoi(result.out.substr(result.out.find(' '))));
  ASSERT_EQ(logs.size(), 2u);
  EXPECT_GE(logs[0].amount("inherited").bytes, 1 << 20);
  EXPECT_EQ(logs[0].amount("delta"), (Amount{2 << 20, 0}));
  EXPECT_EQ(logs[1].amount("delta"), (Amount{-(3 << 20), -1}));
}

// A program that draws the same numbers each time would see the same part of the truth each time.
TEST_F(SamplingTest, EachRunDrawsAnew) {
  std::set<int64_t> seen;
  for (int i = 0; i < 4; ++i) seen.insert(known_answers("64K")[0].amount("live").bytes);
  EXPECT_GT(seen.size(), 1u);
}

TEST_F(SamplingTest, FillsEveryBlock) {
  Command command = sampled({program("fills"), "165"}, "1G");
  command.env["MTRACE_FILL"] = "0xa5";
  const Result result = run(command);
  EXPECT_TRUE(result.exited(0)) << result.how() << result.out << result.err;
}

TEST_F(SamplingTest, BadValues) {
  for (const char* value : {"", "x", "-1", "1.5K", "K", "2G", "512KB", "9999999999999999999999"}) {
    const Result result = run(sampled({"/bin/true"}, value));
    EXPECT_TRUE(result.exited(0));
    EXPECT_EQ(result.err, "mtrace: MTRACE_SAMPLE=" + std::string(value) +
                              " is not a number of bytes from 0 to 1073741824, with or without K, "
                              "M or G; using 0\n");
  }
  for (const char* value : {"0", "1", "4K", "1M", "1G", "1073741824"}) {
    const Result result = run(sampled({"/bin/true"}, value));
    EXPECT_EQ(result.err, "") << value;
  }
}

}  // namespace
}  // namespace mtrace::test
