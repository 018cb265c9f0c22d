// memlog export of a series of reports, to the formats that know time.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "model/profile/reader.h"
#include "tool_test.h"

namespace mtrace::test {
namespace {

// Numbers of stacks, largest first.
std::string sorted(std::vector<uint64_t> numbers) {
  std::erase(numbers, 0u);
  std::sort(numbers.rbegin(), numbers.rend());
  return fmt::format("{}\n", fmt::join(numbers, " "));
}

std::string heaptrack_print(const std::string& options) {
  return shell("heaptrack_print --disable-builtin-suppressions -a0 -p0 -T0 " + options);
}

// What heaptrack finds in `file` of each stack.
std::string in_heaptrack(const std::string& file, const std::string& cost) {
  heaptrack_print(fmt::format("--flamegraph-cost-type {0} -F {1}.{0} {1} >/dev/null", cost,
                              shell_quoted(file)));
  return shell("awk '$NF > 0 {{ print $NF }}' {}.{} | sort -nr | paste -sd ' '", file, cost);
}

// Three reports of a program that grows, shrinks and grows.
class ExportSeries : public testing::Test {
 protected:
  void SetUp() override {
    write_file(directory_ / "steps.py", R"(
import os, signal
kept = []
for size in (3000, 9000, 100):
    kept.append([str(i) * 20 for i in range(size)])
    if size == 9000: kept.clear()
    os.kill(os.getpid(), signal.SIGUSR1)
os._exit(0)
)");
    shell(
        "cd {} && MTRACE_RESOLVER=none {}/memlog run -q -o . --depth 16 "
        "/usr/bin/python3 -S steps.py",
        directory_.path(), build_dir());
    for (const auto& item : std::filesystem::directory_iterator(directory_.path())) {
      if (item.path().extension() == ".memlog") files_.push_back(item.path());
    }
    std::sort(files_.begin(), files_.end());
    ASSERT_GE(files_.size(), 3u);
    for (const std::string& file : files_) reports_.push_back(profile::read_path(file));
    for (const profile::Memlog& report : reports_) {
      for (const profile::Entry& entry : report.entries) {
        if (entry.heap()) live_[entry.stack] = entry.live;
        calls_ += entry.heap() ? entry.activity.allocations : 0;
      }
    }
  }
  std::string exported(const std::string& format, const std::string& name) {
    std::vector<std::string> words = {"export", "-f", format, "-o", directory_ / name};
    words.insert(words.end(), files_.begin(), files_.end());
    const Outcome result = memlog(words);
    EXPECT_EQ(result.status, 0) << result.err;
    return directory_ / name;
  }
  const profile::Header& last() const { return reports_.back().header; }

  TemporaryDirectory directory_;
  std::vector<std::string> files_;
  std::vector<profile::Memlog> reports_;
  std::map<uint64_t, uint64_t> live_;  // at the end
  uint64_t calls_ = 0;
};

TEST_F(ExportSeries, HeaptrackInHeaptrackPrint) {
  for (const char* name : {"heaptrack.data", "heaptrack.data.gz"}) {
    const std::string file = exported("heaptrack", name);
    std::vector<uint64_t> live;
    for (const auto& [stack, bytes] : live_) live.push_back(bytes);
    EXPECT_EQ(in_heaptrack(file, "leaked"), sorted(live));
    // The shares in the peak stand in the report that came after it.
    std::vector<uint64_t> shares;
    for (const profile::Memlog& report : reports_) {
      if (report.header.peak->bytes != last().peak->bytes) continue;
      for (const profile::Entry& entry : report.entries) shares.push_back(entry.peak);
      break;
    }
    EXPECT_EQ(in_heaptrack(file, "peak"), sorted(shares));
    const std::string summary = heaptrack_print(file);
    EXPECT_NE(summary.find(fmt::format("calls to allocation functions: {} ", calls_)),
              std::string::npos)
        << calls_ << " of " << files_.size() << " reports: " << summary;
  }
}

// What one stack did between two reports, with a peak of the process in between. Before, each held
// 1,000 bytes in 2 blocks.
struct Lived {
  const char* what;
  int64_t peak, live, blocks;  // bytes at the peak; bytes and blocks in the end
  int64_t allocs, frees;
};
constexpr Lived kLived[] = {
    {"up and down, allocated twice", 90000, 1864, 3, 2, 1},
    {"up and down to where it was", 3000, 1000, 2, 1, 1},
    {"up and down to nothing", 3000, 0, 0, 1, 3},
    {"up and up", 1500, 2000, 4, 2, 0},
    {"down and up", 500, 2000, 2, 1, 1},
    {"down and down", 500, 0, 0, 0, 2},
    {"nothing to nothing", 1000, 1000, 2, 0, 0},
    {"down after the peak alone", 1000, 400, 1, 0, 1},
    {"up after the peak alone", 1000, 1400, 3, 1, 0},
};

// How much was allocated by the peak is not told: what is made up leaves the sums right.
TEST(ExportPeak, AddsNoCallsInHeaptrack) {
  const TemporaryDirectory directory;
  const std::string file = directory / "heaptrack.data";
  std::vector<std::string> words = {"export", "-f", "heaptrack", "-o", file};
  for (const bool second : {false, true}) {
    int64_t peak = 0, live = 0, blocks = 0;
    std::vector<std::pair<int64_t, std::string>> entries;
    for (size_t i = 0; i < std::size(kLived); ++i) {
      const Lived one = second ? kLived[i] : Lived{"", 1000, 1000, 2, 2, 0};
      const int64_t change = second ? one.live - 1000 : 1000;
      peak += one.peak, live += one.live, blocks += one.blocks;
      const int64_t freed = one.frees == 0 ? 0 : one.allocs == 0 ? -change : 5000;
      std::string activity;
      if (one.allocs != 0) {
        activity += fmt::format("\tallocs={}\tallocated={}", one.allocs, change + freed);
      }
      if (one.frees != 0) activity += fmt::format("\tfrees={}\tfreed={}", one.frees, freed);
      entries.emplace_back(
          -change, fmt::format("{:+}\tblocks={:+}\tlive={}{}\tpeak={}\tstack={:016x}\n"
                               "\tf{}\t(/usr/bin/svc+0x{}00)\n",
                               change, one.blocks - (second ? 2 : 0), one.live, activity, one.peak,
                               i + 1, i, i + 1));
    }
    std::sort(entries.begin(), entries.end());
    const int64_t before = second ? 1000 * int64_t{std::size(kLived)} : 0;
    std::string text = fmt::format(
        "# memlog 1\n# program: /usr/bin/svc\n# pid: 77\n# seq: {0}\n# trigger: signal\n"
        "# started: 2026-11-20T20:00:00.000000Z\n# taken: 2026-11-20T20:00:{0}0.000000Z\n"
        "# delta: {1:+} bytes {2:+} blocks\n# live: {3} bytes {4} blocks\n"
        "# peak: {5} bytes 2026-11-20T20:00:{6}5.000000Z\n"
        "# lost: frames=0 stacks=0 blocks=0 inflight=0\n",
        second ? 2 : 1, live - before, blocks - (second ? before / 500 : 0), live, blocks, peak,
        second ? 1 : 0);
    for (const auto& [order, entry] : entries) text += entry;
    text += fmt::format(
        "# module: /usr/bin/svc base=0x55d0c0a00000\n# uptime: {}0.000 seconds\n# resolved: yes\n"
        "# end\n",
        second ? 2 : 1);
    const std::string path = directory / (second ? "svc-77-2.memlog" : "svc-77-1.memlog");
    write_file(path, text);
    words.push_back(path);
  }
  std::vector<uint64_t> live;
  std::vector<uint64_t> shares;
  int64_t calls = 2 * int64_t{std::size(kLived)};
  for (const Lived& one : kLived) {
    live.push_back(static_cast<uint64_t>(one.live));
    shares.push_back(static_cast<uint64_t>(one.peak));
    calls += one.allocs;
  }
  const Outcome result = memlog(words);
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(in_heaptrack(file, "leaked"), sorted(live));
  EXPECT_EQ(in_heaptrack(file, "peak"), sorted(shares));
  const std::string summary = heaptrack_print(file);
  EXPECT_NE(summary.find(fmt::format("calls to allocation functions: {} ", calls)),
            std::string::npos)
      << calls << ": " << summary;
}

TEST_F(ExportSeries, MassifInMsPrintHasEachReport) {
  const std::string out = shell("ms_print {} | tr -d ,", exported("massif", "massif.out"));
  const std::string root = "B) (heap allocation functions)";
  for (const profile::Memlog& report : reports_) {
    EXPECT_NE(out.find(fmt::format("100.00% ({}{}", report.header.live.bytes, root)),
              std::string::npos)
        << report.name;
  }
  EXPECT_NE(out.find(fmt::format("100.00% ({}{}", last().peak->bytes, root)), std::string::npos);
  EXPECT_NE(out.find("(peak)"), std::string::npos);
}

}  // namespace
}  // namespace mtrace::test
