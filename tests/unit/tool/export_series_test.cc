// memlog export of a series of reports, to the formats that know time.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "heaptrack_print.h"
#include "model/profile/reader.h"
#include "tool_test.h"

namespace mtrace::test {
namespace {

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
    EXPECT_HAS(summary, fmt::format("calls to allocation functions: {} ", calls_))
        << calls_ << " of " << files_.size() << " reports: ";
  }
}

TEST_F(ExportSeries, MassifInMsPrintHasEachReport) {
  const std::string out = shell("ms_print {} | tr -d ,", exported("massif", "massif.out"));
  const std::string root = "B) (heap allocation functions)";
  for (const profile::Memlog& report : reports_) {
    EXPECT_HAS(out, fmt::format("100.00% ({}{}", report.header.live.bytes, root)) << report.name;
  }
  EXPECT_HAS(out, fmt::format("100.00% ({}{}", last().peak->bytes, root));
  EXPECT_HAS(out, "(peak)");
}

}  // namespace
}  // namespace mtrace::test
