// The step after the first command: what memlog leaves out, adds up, refuses and suggests.
#include <gtest/gtest.h>
#include <sys/stat.h>

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

  // The reports of a process, the last at its exit.
  void write_run() {
    for (int seq = 1; seq <= 3; ++seq) {
      const std::string name = "app-5000-" + std::to_string(seq) + ".memlog";
      std::string text = read_file(golden(name));
      const size_t at = text.find("# trigger: ");
      if (seq == 3) text.replace(at, text.find('\n', at) - at, "# trigger: exit");
      write_file(name, text);
    }
  }

  TemporaryDirectory directory_;
  std::filesystem::path before_;
};

TEST_F(NextStep, AMistakeIsAnsweredWithTheNearestCommand) {
  write_run();
  write_file("program", "#!/bin/sh\n");
  ::chmod("program", 0700);
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"show", "--limit", "3"}, "show: unknown option --limit (did you mean --number?)"},
      {{"show", "--all"}, "(did you mean --number 0?)"},
      {{"events", "--limit", "3", "app.events"}, "(did you mean --last?)"},
      {{"run", "--depth", "./program"},
       "run: no program given: --depth took ./program as its value (N)"},
      {{"serve", "./program"}, "no process ./program; to start the program: memlog run ./program"},
      {{"top", "--delay", "app"}, "top: give one process: --delay took app as its value ("},
      {{"check", "--max-growth", "--", "./program"}, "check: --max-growth needs a value ("},
      {{"diff", "app-5000-3.memlog"}, "for what one report changed: memlog show app-5000-3.memlog"},
      {{"export", "app-5000-3.memlog"}, "export: give a format: --format html makes a page"},
      {{"export", "-f", "csv", "-o", "none/x", "app-5000-3.memlog"},
       "cannot write none/x: none/: No such file or directory"},
      {{"merge"}, "memlog merge --keep 100 [DIR]"},
      {{"attach", "./program"}, "no process ./program; to start the program: memlog run ./program"},
      {{"serve", "program"}, "no process program; to start the program: memlog run ./program"},
      {{"top", "app-5000-3.memlog"}, "; of a report: memlog show app-5000-3.memlog"},
      {{"status", "app.events"},
       "no process app.events; of an event log: memlog events app.events"},
  };
  for (const auto& [words, answer] : cases) {
    const Outcome result = memlog(words);
    EXPECT_NE(result.status, 0) << words[0];
    EXPECT_HAS(result.err, answer);
  }
}

TEST_F(NextStep, ShowAfterTheExitIsWhatWasLive) {
  write_run();
  const Outcome sum = memlog({"show", "--sum", "."});
  const Outcome live = memlog({"show"});
  EXPECT_EQ(live.status, 0) << live.err;
  EXPECT_EQ(live.out, sum.out +
                          "note: live at exit: 3 reports added up; what the last one changed: "
                          "memlog show app-5000-3.memlog\n");
  EXPECT_EQ(memlog({"show", "."}).out, live.out);
  // Who asks for something gets that.
  const std::string change = memlog({"show", "app-5000-3.memlog"}).out;
  EXPECT_HAS(change, "changed by ");
  EXPECT_HAS(memlog({"show", "--seq", "3"}).out, "changed by ");
  EXPECT_HAS(memlog({"show", "--json"}).out, "\"seq\": 3");
  // With a report missing, there is no sum.
  std::filesystem::remove("app-5000-1.memlog");
  EXPECT_EQ(memlog({"show"}).out, memlog({"show", "./app-5000-3.memlog"}).out);
}

TEST_F(NextStep, WhatRuntimesKeepIsLeftOutAndSaid) {
  const std::string text = small_memlog(
      {"_IO_file_doallocate\t(/usr/lib/libc.so.6+0x99)", "main\tapp.c:42\t(/usr/bin/app+0x1110)"});
  write_file("one.memlog", text);
  for (const char* command : {"show", "tree"}) {
    const std::string out = memlog({command, "--no-header", "one.memlog"}).out;
    EXPECT_HAS(out, "... 1 that the C and C++ runtimes keep, net +64 bytes (--no-builtin)\n");
    EXPECT_LACKS(out, "main");
    const std::string all = memlog({command, "--no-header", "--no-builtin", "one.memlog"}).out;
    EXPECT_HAS(all, "main");
  }
  // For programs, and for comparing, nothing is left out.
  EXPECT_HAS(memlog({"show", "--json", "one.memlog"}).out, "_IO_file_doallocate");
  EXPECT_HAS(memlog({"show", "--by", "stack", "one.memlog"}).out, "main");
  for (const char* format : {"folded", "csv", "jsonl", "speedscope", "callgrind"}) {
    EXPECT_HAS(memlog({"export", "-f", format, "one.memlog"}).out, "_IO_file_doallocate");
  }
  // In a picture it is one box.
  for (const char* picture : {"flamegraph", "dot"}) {
    const std::string box = memlog({"export", "-f", picture, "one.memlog"}).out;
    EXPECT_HAS(box, "kept by runtimes");
    EXPECT_HAS(box, "64");
    EXPECT_LACKS(box, "main");
    const std::string all = memlog({"export", "-f", picture, "--frames", "all", "one.memlog"}).out;
    EXPECT_HAS(all, "main");
    EXPECT_LACKS(all, "kept by runtimes");
  }
}

TEST_F(NextStep, NumbersAreForPeopleAlsoInAPipe) {
  const std::string report = golden("app-4711-2.memlog");
  ::setenv("MEMLOG_BYTES", "0", 1);
  const std::string people = memlog({"show", report}).out;
  EXPECT_HAS(people, " KiB");
  const std::string exact = memlog({"show", "--bytes", report}).out;
  EXPECT_HAS(exact, "+63360 bytes");
  ::setenv("MEMLOG_BYTES", "1", 1);
  EXPECT_EQ(memlog({"show", report}).out, exact);
}

TEST_F(NextStep, ALocaleWithoutUtf8GetsAscii) {
  for (const char* name : {"C", "POSIX", "de_DE.ISO-8859-1", "en_US"}) {
    ::setenv("LC_ALL", name, 1);
    EXPECT_FALSE(util::prints_utf8()) << name;
    const std::string out = memlog({"show", golden("app-4960-1.memlog")}).out;
    EXPECT_HAS(out, " +- ");
    for (const char c : out) EXPECT_EQ(c & 0x80, 0);
  }
  for (const char* name : {"C.UTF-8", "en_US.utf8", "de_DE.UTF-8@euro"}) {
    ::setenv("LC_ALL", name, 1);
    EXPECT_TRUE(util::prints_utf8()) << name;
  }
  ::setenv("LC_ALL", "C.UTF-8", 1);
}

TEST_F(NextStep, APageIsNotForATerminal) {
  const std::string report = golden("app-4711-2.memlog");
  for (const char* format : {"html", "flamegraph", "speedscope", "pprof"}) {
    const Outcome refused = memlog({"export", "-f", format, report}, true);
    EXPECT_EQ(refused.status, 2);
    EXPECT_EQ(refused.out, "");
    EXPECT_HAS(refused.err, std::string("memlog export -f ") + format + " -o report.");
    EXPECT_EQ(memlog({"export", "-f", format, report}).status, 0) << "a pipe takes it";
  }
  EXPECT_EQ(memlog({"export", "-f", "folded", report}, true).status, 0);
}

TEST_F(NextStep, CheckKnowsAProgram) {
  write_file("t", "#!/bin/sh\n");
  ::chmod("t", 0755);
  const Outcome file = memlog({"check", "--max-live", "10K", "./t"});
  EXPECT_EQ(file.err,
            "memlog: check: ./t is a program: put -- before it: memlog check ... -- ./t\n");
  EXPECT_EQ(file.status, 2);
  EXPECT_HAS(memlog({"check", "true"}).err, "true is a program");
  // An executable memlog, as some file systems have all files, is a memlog.
  write_file("one.memlog", small_memlog({"leaks"}));
  ::chmod("one.memlog", 0755);
  EXPECT_LACKS(memlog({"check", "one.memlog"}).err, "program");
  EXPECT_LACKS(memlog({"check", "*.memlog"}).err, "program");
}

TEST_F(NextStep, UnknownTopicsAreAnsweredWithThoseThereAre) {
  EXPECT_HAS(memlog({"help", "zzzzzz"}).err, "there are: options, library-code, run, ");
  EXPECT_HAS(memlog({"help", "shwo"}).err, "did you mean show?");
  for (const char* version : {"-v", "-V", "--version"}) {
    EXPECT_TRUE(memlog({version}).out.starts_with("memlog ")) << version;
  }
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

// What is typed by mistake is recognised.
TEST_F(NextStep, MistakesAreNamed) {
  write_file("app", "#!/bin/sh\n");
  EXPECT_HAS(memlog({"show", "app"}).err, "a program: memlog run makes one of it");
  EXPECT_HAS(memlog({"./app"}).err, "unknown command ./app; to run a program: memlog run ./app");
  EXPECT_HAS(memlog({"export", "-f", "flame", "x"}).err, "(did you mean flamegraph?)");
}

// Of several processes, those with too few reports are one line behind what can be judged.
TEST_F(NextStep, LeaksLeadsWithTheProcessThatHasReports) {
  for (int seq = 1; seq <= 9; ++seq) {
    const std::string name = "app-5000-" + std::to_string(seq) + ".memlog";
    write_file(name, read_file(golden(name)));
  }
  for (const char* other : {"app-4711-1.memlog", "app-4800-1.memlog", "app-4900-1.memlog"}) {
    write_file(other, read_file(golden(other)));
  }
  const std::string out = memlog({"leaks", "."}).out;
  EXPECT_TRUE(out.starts_with("svc[5000]: 9 reports, 7 of them comparable")) << out;
  EXPECT_TRUE(out.ends_with("\n3 further processes have too few reports to judge\n")) << out;
  EXPECT_LACKS(out, "killall");
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
