// Merging the oldest reports of a process: the sum of all stays what it was, in every view.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "model/profile/reader.h"
#include "tool_test.h"
#include "view/reports/catalog.h"

namespace mtrace::test {
namespace {

namespace fs = std::filesystem;

class Merge : public testing::Test {
 protected:
  // The nine reports of process 5000.
  void SetUp() override {
    for (int seq = 1; seq <= 9; ++seq) copy(seq);
  }
  void copy(int seq) const {
    fs::copy_file(source_dir() + "/tests/golden/" + name(seq), directory_ / name(seq),
                  fs::copy_options::overwrite_existing);
  }
  static std::string name(int seq) { return fmt::format("app-5000-{}.memlog", seq); }
  std::vector<std::string> with_files(std::vector<std::string> words) const {
    std::vector<std::string> files;
    for (const auto& file : fs::directory_iterator(directory_.path())) files.push_back(file.path());
    std::sort(files.begin(), files.end());
    words.insert(words.end(), files.begin(), files.end());
    return words;
  }
  // The lines of the sum of all reports, in an order of their own.
  std::multiset<std::string> sum() const {
    const Outcome result = memlog(with_files({"export", "-f", "csv", "--no-resolve"}));
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err, "");
    std::multiset<std::string> lines;
    for (size_t at = 0, end; (end = result.out.find('\n', at)) != std::string::npos; at = end + 1) {
      lines.insert(result.out.substr(at, end - at));
    }
    return lines;
  }
  std::string merge(const std::string& keep) const {
    const Outcome result = memlog({"merge", "--keep", keep, directory_.path()});
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  }
  size_t files() const { return reports::list_memlogs(directory_.path()).size(); }

  TemporaryDirectory directory_;
};

TEST_F(Merge, TheSumStaysExact) {
  const auto before = sum();
  ASSERT_GT(before.size(), 3u);
  EXPECT_EQ(merge("3"), directory_.path() + ": 5 reports merged into later ones\n");
  EXPECT_EQ(files(), 4u);
  EXPECT_EQ(sum(), before);
  const profile::Memlog merged = profile::read_path(directory_ / name(6));
  EXPECT_EQ(merged.header.merged, 1);
  EXPECT_HAS(read_file(directory_ / name(6)), "\n# seq: 6\n# merged: 1 to 6\n");
  int64_t bytes = 0;
  for (const profile::Entry& entry : merged.entries) bytes += entry.heap() ? entry.bytes : 0;
  EXPECT_EQ(bytes, merged.header.delta.bytes);
  EXPECT_EQ(merged.header.delta.bytes, merged.header.live.bytes);
  // Again, with what was merged before.
  EXPECT_EQ(merge("1"), directory_.path() + ": 2 reports merged into later ones\n");
  EXPECT_EQ(files(), 2u);
  EXPECT_EQ(sum(), before);
  EXPECT_EQ(merge("1"), directory_.path() + ": 0 reports merged into later ones\n");
}

TEST_F(Merge, WhereItWasCutShortNothingCountsTwice) {
  const auto before = sum();
  merge("3");
  copy(2);
  copy(5);
  EXPECT_EQ(sum(), before);
  EXPECT_EQ(memlog(with_files({"leaks", "--no-resolve"})).status, 0);
  EXPECT_EQ(files(), 6u);
  merge("3");
  EXPECT_EQ(files(), 4u);
  EXPECT_EQ(sum(), before);
}

TEST_F(Merge, EveryViewTakesIt) {
  merge("5");
  for (const char* view : {"show", "tree", "leaks"}) {
    const Outcome result = memlog(with_files({view, "--no-resolve"}));
    EXPECT_EQ(result.status, 0) << view << result.err;
    EXPECT_LACKS(result.err, "missing") << view;
  }
  for (const char* format : {"html", "massif", "heaptrack", "pprof"}) {
    const Outcome result = memlog(with_files({"export", "-f", format, "--no-resolve"}));
    EXPECT_EQ(result.status, 0) << format << result.err;
    EXPECT_LACKS(result.out, "missing: report") << format;
  }
  const Outcome diff = memlog({"diff", "--no-resolve", directory_ / name(5), directory_ / name(9)});
  EXPECT_EQ(diff.status, 0) << diff.err;
}

TEST_F(Merge, AGapIsLeftAlone) {
  fs::remove(directory_ / name(2));
  EXPECT_EQ(merge("3"), directory_.path() + ": 0 reports merged into later ones\n");
  EXPECT_EQ(files(), 8u);
}

// Under memlog run, in the directory of the test; $memlog is the tool.
std::string script(const TemporaryDirectory& directory, const std::string& text) {
  return shell("exec 2>&1; cd {}; memlog={}/memlog; {}", directory.path(), build_dir(),
               Script{text});
}

TEST(RunEvery, KeepsTheNewestAndTheirSum) {
  TemporaryDirectory directory;
  const std::string out =
      script(directory,
             "$memlog run --output . -q --every 100ms --keep 2 perl -e 'select(undef, undef, "
             "undef, 0.02) until glob(\"perl-*-7.memlog\")'; $memlog export -f csv *.memlog "
             ">/dev/null; echo status $?");
  EXPECT_EQ(out, "status 0\n");
  const auto all = reports::list_memlogs(directory.path());
  // Besides those that came after the last look: one that was asked for and the one at exit.
  EXPECT_LE(all.size(), 2u + 1 + 2);
  EXPECT_EQ(std::count_if(all.begin(), all.end(), [](const auto& one) { return one.first == 1; }),
            1);
}

// The signal is the program's own: memlog asks through the ledger.
TEST(RunEvery, AsksAProgramThatHasTheSignal) {
  TemporaryDirectory directory;
  const std::string out =
      script(directory,
             "$memlog run --output . -q --every 100ms perl -e '$SIG{USR1} = sub { print "
             "\"signalled\\n\" }; "
             "select(undef, undef, undef, 0.02) while (() = glob(\"*.memlog\")) < 3'");
  EXPECT_EQ(out, "");
  size_t asked = 0;
  for (const reports::Listed& one : reports::list_memlogs(directory.path())) {
    asked += one.trigger == "request";
  }
  EXPECT_GE(asked, 2u);
}

// One memlog names them all, and opens the debugging information of libc once.
TEST(RunEvery, NamesTheReportsThatItAsksFor) {
  TemporaryDirectory directory;
  write_file(directory / "resolver",
             shell("#!/bin/sh\necho started >>{}/starts; exec {}/memlog \"$@\"\n", directory.path(),
                   build_dir()));
  fs::permissions(directory / "resolver", fs::perms::owner_all);
  const std::string out =
      script(directory,
             "MTRACE_RESOLVER=$PWD/resolver $memlog run --output reports -q --every 100ms perl -e "
             "'select(undef, undef, undef, 0.02) until glob(\"reports/perl-*-5.memlog\")'");
  EXPECT_EQ(out, "");
  size_t others = 0;
  for (const reports::Listed& one : reports::list_memlogs(directory / "reports")) {
    EXPECT_FALSE(reports::lacks_names(one.path)) << one.path;
    others += one.trigger != "request";
  }
  const std::string starts = read_file(directory / "starts");
  EXPECT_LE(static_cast<size_t>(std::count(starts.begin(), starts.end(), '\n')), others);
}

}  // namespace
}  // namespace mtrace::test
