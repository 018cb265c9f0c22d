// memlog run --every: reports that it asks for, merges and names. What memlog merge does:
// transcripts/merge.txt.
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
