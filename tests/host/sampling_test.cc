// MTRACE_SAMPLE: estimates are unbiased, and as far from the truth as the report says.
#include <cmath>
#include <cstdio>

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

  // Its reports have also an estimate of no change.
  Command sampled(Words argv, const std::string& mean) const {
    return traced(std::move(argv), {{"MTRACE_SAMPLE", mean}, {"MTRACE_ENTRIES", "all"}});
  }
  // `size`: of all blocks, instead of kSizes.
  std::vector<Memlog> known_answers(const std::string& mean, const std::string& size = "") {
    Words argv = {program("sampling"), std::to_string(kStacks), std::to_string(kBlocks)};
    if (!size.empty()) argv.push_back(size);
    return reports_of(sampled(argv, mean), 3);
  }
  static bool of_program(const Entry& entry) {
    return !entry.frames.empty() && entry.frames[0].module == program("sampling");
  }
  // The standard errors that memlog works out, of the change and of what is live.
  struct Errors {
    double change = 0;
    double live = 0;
  };
  // By stack.
  std::map<std::string, Errors> stack_errors(const Memlog& log) {
    std::istringstream text(memlog({"sql", "--no-resolve", "--format", "csv",
                                    "select stack, error_bytes, live_error_bytes from entries "
                                    "where kind = 'heap' and stack is not null",
                                    log.path})
                                .out);
    std::map<std::string, Errors> errors;
    std::string line;
    std::getline(text, line);
    while (std::getline(text, line)) {
      Errors& one = errors[line.substr(0, line.find(','))];
      if (sscanf(line.c_str(), "%*[^,],%lf,%lf", &one.change, &one.live) != 2) ADD_FAILURE();
    }
    return errors;
  }
  Errors report_errors(const Memlog& log) {
    const std::string text = memlog({"show", "--no-resolve", "--json", "-n", "1", log.path}).out;
    const auto number = [&](const std::string& key) {
      const size_t at = text.find(key);
      return at == text.npos ? -1 : std::stod(text.substr(at + key.size()));
    };
    return {number("\"delta_error_bytes\": "), number("\"live_error_bytes\": ")};
  }
  // 95 of 100, give or take five standard deviations of what chance does to 2,000.
  static void expect_at_least_95_percent(const Estimates& all) {
    ASSERT_EQ(all.count, kStacks);
    EXPECT_GT(all.covered, kStacks * 0.925);
    EXPECT_LT(std::abs(all.off), 5 * std::sqrt(all.square)) << "biased";
  }
  static void expect_95_percent(const Estimates& all) {
    expect_at_least_95_percent(all);
    EXPECT_LT(all.covered, kStacks * 0.975);
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

// Of blocks of different sizes the error is rather too large, but not by much.
TEST_F(SamplingTest, IntervalsHoldTheTruthInAtLeast95Of100) {
  const std::vector<Memlog> logs = known_answers(std::to_string(kMean));
  const double bytes = kBlocks * sum_over_sizes(kMean, [](double size, double) { return size; });
  const double variance = kBlocks * sum_over_sizes(kMean, [](double size, double p) {
                            return size * size * (1 - p) / p;
                          });
  Estimates live;
  Estimates change;
  Estimates blocks;
  const double blocks_error =
      std::sqrt(kBlocks * sum_over_sizes(kMean, [](double, double p) { return (1 - p) / p; }));
  std::map<std::string, Errors> errors = stack_errors(logs[0]);
  for (const Entry& entry : logs[0].entries) {
    if (!of_program(entry)) continue;
    live.add(entry.live, errors[entry.stack].live, bytes);
    change.add(entry.bytes, errors[entry.stack].change, bytes);
    blocks.add(entry.blocks, blocks_error, kBlocks * 4);
  }
  expect_at_least_95_percent(live);
  expect_at_least_95_percent(change);
  EXPECT_LT(live.square, 3 * variance * kStacks);
  EXPECT_LT(change.square, 3 * variance * kStacks);
  // Here by the true error: that of the estimate is dominated by how many blocks of 0 bytes it saw.
  EXPECT_LT(std::abs(blocks.off), 5 * std::sqrt(blocks.square));

  // Half are freed and as many made: nothing has changed, but that is not to be known exactly.
  Estimates second;
  Estimates live_then;
  errors = stack_errors(logs[1]);
  for (const Entry& entry : logs[1].entries) {
    if (!of_program(entry)) continue;
    second.add(entry.bytes, errors[entry.stack].change, 0);
    live_then.add(entry.live, errors[entry.stack].live, bytes);
  }
  expect_at_least_95_percent(second);
  expect_at_least_95_percent(live_then);
  EXPECT_LT(second.square, 3 * variance * kStacks);

  for (const Memlog& log : logs) EXPECT_EQ(log.get("sampled"), "1000 bytes");
  const auto within = [](double found, double error, double truth) {
    return std::abs(found - truth) <= 5 * error;
  };
  const Memlog& log = logs[1];
  const Errors all = report_errors(log);
  EXPECT_PRED3(within, log.amount("live").bytes, all.live, bytes * kStacks);
  EXPECT_PRED3(within, log.amount("delta").bytes, all.change, 0);
  EXPECT_PRED3(within, log.amount("allocated").bytes, 1.5 * all.live, 1.5 * bytes * kStacks);
  EXPECT_PRED3(within, log.amount("freed").bytes, all.live, bytes * kStacks / 2);
  EXPECT_LT(all.live * all.live, 3 * variance * kStacks);
  // All that is recorded is taken out again, with the weights with which it came.
  EXPECT_EQ(logs[2].amount("live"), Amount{});
  EXPECT_EQ(report_errors(logs[2]).live, 0);
}

// Of blocks of one size the error is right.
TEST_F(SamplingTest, IntervalsOfOneSizeHoldTheTruthIn95Of100) {
  for (const int size : {200, 700}) {
    SCOPED_TRACE(size);
    const std::vector<Memlog> logs = known_answers(std::to_string(kMean), std::to_string(size));
    Estimates live;
    Estimates change;
    std::map<std::string, Errors> errors = stack_errors(logs[0]);
    for (const Entry& entry : logs[0].entries) {
      if (of_program(entry)) live.add(entry.live, errors[entry.stack].live, 4.0 * kBlocks * size);
    }
    expect_95_percent(live);
    errors = stack_errors(logs[1]);
    for (const Entry& entry : logs[1].entries) {
      if (of_program(entry)) change.add(entry.bytes, errors[entry.stack].change, 0);
    }
    expect_95_percent(change);
  }
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
    EXPECT_HAS(log.get("library"), "MTRACE_SAMPLE=8M");
  }
}

TEST_F(SamplingTest, WithoutItNothingIsSaidOfErrors) {
  const Result result = expect_exit(run(traced({program("sampling"), "10", "10"})));
  for (const Memlog& log : logs_of(result.pid)) {
    EXPECT_FALSE(log.has("sampled"));
    EXPECT_EQ(report_errors(log).change, -1);
    for (const auto& [stack, errors] : stack_errors(log)) {
      EXPECT_EQ(errors.change + errors.live, 0) << stack;
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
    const Result result = expect_exit(run(command));
    const auto told = told_sites(result.out);
    const std::vector<Memlog> logs = logs_of(result.pid);
    ASSERT_EQ(logs.size(), told.size() + 1);
    Sites before;
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
                         named_after);

// Every second is freed by the other thread.
TEST_F(SamplingTest, ThreadsAndForks) {
  const std::vector<Words> kPrograms = {
      {"truth_threads", "signals"}, {"churn", "20000"}, {"fork_busy"}};
  for (Words argv : kPrograms) {
    SCOPED_TRACE(argv[0]);
    argv[0] = program(argv[0]);
    expect_exit(run(sampled(argv, "2K")));
  }
}

// Whatever a child does first, it is a process of its own by then.
TEST_F(SamplingTest, ResizeIsTheFirstOfAChild) {
  const Result result = expect_exit(run(sampled({program("fork_resize")}, "1")));
  const std::vector<Memlog> logs = logs_of(std::stoi(result.out.substr(result.out.find(' '))), 2);
  EXPECT_GE(logs[0].amount("inherited").bytes, 1 << 20);
  EXPECT_EQ(logs[0].amount("delta"), (Amount{2 << 20, 0}));
  EXPECT_EQ(logs[1].amount("delta"), (Amount{-(3 << 20), -1}));
}

// A program that draws the same numbers each time would see the same part of the truth each time.
TEST_F(SamplingTest, EachRunDrawsAnew) {
  std::set<int64_t> seen;
  for (int i = 0; i < 3; ++i) seen.insert(known_answers("64K")[0].amount("live").bytes);
  EXPECT_GT(seen.size(), 1u);
}

TEST_F(SamplingTest, FillsEveryBlock) {
  Command command = sampled({program("fills"), "165"}, "1G");
  command.env["MTRACE_FILL"] = "0xa5";
  expect_exit(run(command));
}

}  // namespace
}  // namespace mtrace::test
