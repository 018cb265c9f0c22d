// What is allocated and freed again, through the whole tool: every view and export of the reports
// that the library writes by default has all of it, and the sums agree with what the program did.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "model/profile/reader.h"
#include "tool_test.h"

namespace mtrace::test {
namespace {

using nlohmann::json;

// As tests/programs/temporaries.c does.
constexpr uint64_t kStays = 100001, kPasses = 101000, kPassesLater = 1000, kCrosses = 10;
constexpr uint64_t kCalls = kStays + kPasses + kCrosses;
constexpr uint64_t kAllocated = kStays * 24 + kPasses * 48 + kCrosses * 500;
constexpr uint64_t kTemporary = kStays - 1 + kPasses;

class Temporary : public testing::Test {
 protected:
  void SetUp() override { trace(""); }

  // Runs the program with `settings` and takes its two reports.
  void trace(const std::string& settings) {
    files_.clear();
    const std::string where = directory_ / fmt::format("run{}", ++runs_);
    shell("mkdir {0} && cd {0} && {1} {2}/memlog run -q -o . {2}/tests/programs/{3}", where,
          Script{settings}, build_dir(), "temporaries");
    for (const auto& item : std::filesystem::directory_iterator(where)) {
      if (item.path().extension() == ".memlog") files_.push_back(item.path());
    }
    std::sort(files_.begin(), files_.end());
    ASSERT_EQ(files_.size(), 2u);
  }

  std::string view(std::vector<std::string> words) const {
    words.insert(words.end(), files_.begin(), files_.end());
    const Outcome result = memlog(words);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  }
  std::string exported(const std::string& format, const std::string& name) const {
    const std::string file = directory_ / name;
    view({"export", "-f", format, "-o", file});
    return file;
  }
  // The sum of a column over the rows of `csv` (comma-separated, quoted texts last).
  static uint64_t column(const std::string& csv, const std::string& name) {
    return std::stoull(
        shell("python3 -c 'import csv, sys; print(sum(int(r[\"{}\"] or 0) for r in "
              "csv.DictReader(open(sys.argv[1]))))' {}",
              name, csv));
  }

  TemporaryDirectory directory_;
  std::vector<std::string> files_;
  int runs_ = 0;
};

uint64_t sum_of(const json& entries, const char* key) {
  uint64_t sum = 0;
  for (const json& entry : entries) sum += entry.value(key, uint64_t{0});
  return sum;
}

TEST_F(Temporary, ViewsOfOneReportHaveAll) {
  const json reports = json::parse(view({"show", "--json"}))["reports"];
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(sum_of(reports[0]["stacks"], "temporary_blocks"), kTemporary - kPassesLater);
  EXPECT_EQ(sum_of(reports[1]["stacks"], "temporary_blocks"), kPassesLater);
  EXPECT_EQ(sum_of(reports[0]["stacks"], "allocated_blocks") +
                sum_of(reports[1]["stacks"], "allocated_blocks"),
            kCalls);
  const std::string text = view({"show", "--by", "temporary"});
  EXPECT_HAS(text, "100,000 temporary, 100.0% of 100,000 allocations");
  EXPECT_LACKS(text, "MTRACE_ENTRIES") << "nothing is missing";
}

TEST_F(Temporary, SumsHaveAll) {
  const json sum = json::parse(view({"show", "--sum", "--by", "temporary", "--json"}));
  EXPECT_EQ(sum_of(sum["stacks"], "temporary_blocks"), kTemporary);
  const std::string tree = view({"tree", "--sum", "--by", "allocs"});
  EXPECT_HAS(tree, "201,011");
}

TEST_F(Temporary, ViewsOfGrowthAreAsShortAsBefore) {
  const std::string text = view({"show"});
  EXPECT_LACKS(text, "site_passes");
  EXPECT_HAS(text, "site_stays");
  EXPECT_HAS(text, "... 1 freed as much as it allocated (--by allocs)\n");
  const std::string tree = view({"tree"});
  EXPECT_LACKS(tree, "site_passes");
  const std::string sum = view({"show", "--sum"});
  EXPECT_LACKS(sum, "site_passes");
  EXPECT_LACKS(sum, "site_crosses");
}

TEST_F(Temporary, AViewOfNothingSaysSo) {
  trace("MTRACE_START=0");
  EXPECT_EQ(view({"show", "--depth", "1", "--no-header"}), "no stack changed\nno stack changed\n");
}

TEST_F(Temporary, MergedStacksThatChangedNothingAreCounted) {
  const Outcome result = memlog(
      {"show", "--depth", "1", "--no-header", "--include", "function:site_passes", files_[1]});
  EXPECT_TRUE(result.out.find("... 1 freed as much as it allocated (--by allocs)\n") !=
              std::string::npos)
      << result.out;
}

TEST_F(Temporary, ComparisonsKnowOnlyWhatIsLive) {
  const Outcome diff = memlog({"diff", files_[0], files_[1]});
  EXPECT_HAS(diff.out, "0 stacks grew, 1 shrank, 1 unchanged\nonly in B 0, only in A 1\n");
}

TEST_F(Temporary, TablesOfSeveralReportsHaveEveryStack) {
  const std::string csv = exported("csv", "all.csv");
  EXPECT_EQ(column(csv, "allocs"), kCalls);
  EXPECT_EQ(column(csv, "allocated"), kAllocated);
  EXPECT_EQ(column(csv, "temporary"), kTemporary);
  const std::string by_peak = directory_ / "peak.csv";
  view({"export", "-f", "csv", "--by", "peak", "--depth", "2", "-o", by_peak});
  EXPECT_EQ(column(by_peak, "allocs"), kCalls) << "--by sorts a table";
  uint64_t calls = 0;
  const std::string lines = view({"export", "-f", "jsonl"});
  for (size_t at = 0, end; (end = lines.find('\n', at)) != std::string::npos; at = end + 1) {
    calls += json::parse(lines.substr(at, end - at)).value("allocated_blocks", uint64_t{0});
  }
  EXPECT_EQ(calls, kCalls);
}

TEST_F(Temporary, HeaptrackCountsEachCall) {
  const std::string summary = shell("heaptrack_print --disable-builtin-suppressions -a0 -p0 -l0 {}",
                                    exported("heaptrack", "heaptrack.data"));
  EXPECT_HAS(summary, fmt::format("calls to allocation functions: {} ", kCalls));
  // heaptrack misses one for each change from one stack to the next.
  const std::string title = "temporary memory allocations: ";
  const size_t at = summary.find(title);
  ASSERT_NE(at, std::string::npos) << summary;
  EXPECT_NEAR(std::stod(summary.substr(at + title.size())), kTemporary, 4);
}

TEST_F(Temporary, ProfilesHaveWhatWasAllocated) {
  const std::string modules = build_dir() + "/npm/node_modules";
  ASSERT_TRUE(std::filesystem::exists(modules + "/pprof-format")) << "make deps-test installs it";
  write_file(directory_ / "read.cjs", R"(
const { Profile } = require('pprof-format');
const zlib = require('zlib'), fs = require('fs');
const profile = Profile.decode(zlib.gunzipSync(fs.readFileSync(process.argv[2])));
const sum = (i) => profile.sample.reduce((all, one) => all + Number(one.value[i]), 0);
console.log(sum(0), sum(1), sum(2), sum(3));
)");
  const auto pprof = [&](const std::string& file) {
    return shell("NODE_PATH={} node {} {}", modules, directory_ / "read.cjs", file);
  };
  EXPECT_EQ(pprof(exported("pprof", "sum.pb.gz")), fmt::format("{} {} 1 24\n", kCalls, kAllocated));
  // The second report alone: a stack shrank, another only passed.
  const std::string second = directory_ / "second.pb.gz";
  const Outcome result = memlog({"export", "-f", "pprof", "-o", second, files_[1]});
  EXPECT_EQ(result.err, "memlog: export: 1 stack shrank: it is 0 in the profile\n");
  EXPECT_EQ(pprof(second), fmt::format("{} {} 0 0\n", kPassesLater, kPassesLater * 48));
}

TEST_F(Temporary, ReportsOfNetSayWhatTheyLack) {
  trace("MTRACE_ENTRIES=net");
  const std::string text = view({"show", "--by", "temporary"});
  EXPECT_HAS(text, "... not listed: stacks that freed all they allocated (MTRACE_ENTRIES=net)\n");
  const json last = json::parse(view({"show", "--json"}))["reports"][1];
  EXPECT_EQ(sum_of(last["stacks"], "freed_blocks"), kCrosses) << "those of site_passes are missing";
}

}  // namespace
}  // namespace mtrace::test
