// The step after the first command: where names can be had, what a time of the day means, and the
// width of pages.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "model/events/event_log.h"
#include "model/symbols/symbolizer.h"
#include "surface/cli/command.h"
#include "tool_test.h"
#include "util/text.h"
#include "view/reports/catalog.h"

namespace mtrace::test {
namespace {

class NextStep : public testing::Test {
 protected:
  NextStep() : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(directory_.path());
  }
  ~NextStep() override { std::filesystem::current_path(before_); }

  TemporaryDirectory directory_;
  std::filesystem::path before_;
};

TEST_F(NextStep, LocalesWithUtf8AreKnown) {
  for (const char* name : {"C", "POSIX", "de_DE.ISO-8859-1", "en_US"}) {
    ::setenv("LC_ALL", name, 1);
    EXPECT_FALSE(util::prints_utf8()) << name;
  }
  for (const char* name : {"C.UTF-8", "en_US.utf8", "de_DE.UTF-8@euro"}) {
    ::setenv("LC_ALL", name, 1);
    EXPECT_TRUE(util::prints_utf8()) << name;
  }
  ::setenv("LC_ALL", "C.UTF-8", 1);
}

// Names of a package, of a file that no package has, and of a system without dpkg.
TEST_F(NextStep, WhereNamesCanBeHad) {
  const std::string root = directory_.path();
  std::filesystem::create_directories(root + "/var/lib/dpkg/info");
  std::filesystem::create_directories(root + "/etc");
  write_file("etc/os-release", "NAME=x\nID=debian\nID_LIKE=y\n");
  write_file("var/lib/dpkg/info/libsqlite3-0:amd64.list",
             "/.\n/usr/lib/x86_64-linux-gnu/libsqlite3.so.0.8.6\n");
  write_file("var/lib/dpkg/info/libc6:amd64.list", "/lib/x86_64-linux-gnu/libc.so.6\n");
  const std::string server = "DEBUGINFOD_URLS=https://debuginfod.debian.net";
  EXPECT_EQ(symbols::names_from("/usr/lib/x86_64-linux-gnu/libsqlite3.so.0.8.6", root),
            "apt install libsqlite3-0-dbgsym, or " + server);
  EXPECT_EQ(symbols::names_from("/usr/lib/x86_64-linux-gnu/libc.so.6", root),
            "apt install libc6-dbg, or " + server);
  EXPECT_EQ(symbols::names_from("/home/me/app", root), "it is stripped: built with -g it has them");
  EXPECT_EQ(symbols::names_from("/usr/lib/other.so", root), server);
  write_file("etc/os-release", "ID=\"unheard-of\"\n");
  EXPECT_EQ(symbols::names_from("/usr/lib/other.so", root),
            "DEBUGINFOD_URLS=https://debuginfod.elfutils.org");
}

// A snapshot has the number of the report that the process would have written next.
TEST_F(NextStep, ASnapshotIsNoReportOfTheRun) {
  for (const char* trigger : {"snapshot", "recovered"}) {
    std::string text = small_memlog({"f\t(/bin/app+0x10)"});
    text.replace(text.find("signal"), 6, trigger);
    write_file(std::string("app-4711-") + trigger + ".memlog", text);
  }
  const reports::RunReports found = reports::reports_of_run(".", 4711, "2026-11-20");
  ASSERT_EQ(found.processes.size(), 1u);
  ASSERT_EQ(found.processes[0].files.size(), 1u);
  EXPECT_TRUE(found.processes[0].files[0].ends_with("-recovered.memlog"));
  std::filesystem::remove("app-4711-recovered.memlog");
  EXPECT_EQ(reports::reports_of_run(".", 4711, "2026-11-20").processes.size(), 1u);
}

// A time of the day is that of the log's day, or of the next when the log began long after it.
TEST_F(NextStep, TimesOfTheDayBesideTheBeginningOfALog) {
  constexpr uint64_t kSecond = 1'000'000'000;
  const uint64_t day = *events::read_time("2026-11-25T00:00:00Z", 0);
  const uint64_t began = *events::read_time("2026-11-25T20:14:21.02Z", 0);
  EXPECT_EQ(events::read_time("20:14:21", began), began - kSecond / 50);
  EXPECT_EQ(events::read_time("20:14:22", began), began - kSecond / 50 + kSecond);
  EXPECT_EQ(events::read_time("01:00:00", began), day + (24 + 1) * 3600 * kSecond);
}

TEST_F(NextStep, PagesAreAsWideAsTheTerminal) {
  EXPECT_EQ(cli::manual_width(0), 80u);
  EXPECT_EQ(cli::manual_width(200), 80u);
  EXPECT_EQ(cli::manual_width(60), 60u);
  EXPECT_EQ(cli::manual_width(10), 40u);
  const std::string page = cli::manual_text(cli::resolve_command().manual, 60);
  size_t prose = 0;
  for (const std::string_view line : util::split(page, '\n')) {
    if (line.starts_with("      ")) prose = std::max(prose, line.size());
  }
  EXPECT_GT(prose, 50u);
  EXPECT_LE(prose, 60u);
}

TEST_F(NextStep, WordsForAShell) {
  EXPECT_EQ(util::shell_word("r1/app-1.memlog"), "r1/app-1.memlog");
  EXPECT_EQ(util::shell_word(""), "''");
  EXPECT_EQ(util::shell_word("a b"), "'a b'");
  EXPECT_EQ(util::shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(util::shell_word("$(rm x)"), "'$(rm x)'");
  EXPECT_EQ(util::shell_word("a*"), "'a*'");
}

}  // namespace
}  // namespace mtrace::test
