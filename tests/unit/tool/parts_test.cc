// The small parts: numbers and texts, arguments, merging, address ranges, names, isolation.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "model/profile/reader.h"
#include "model/symbols/elf_file.h"
#include "model/symbols/perf_map.h"
#include "model/symbols/symbolizer.h"
#include "model/symbols/worker.h"
#include "surface/cli/arguments.h"
#include "tool_test.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"
#include "view/analyze/table.h"
#include "view/reports/catalog.h"
#include "view/text/report_text.h"
#include "view/text/style.h"

namespace mtrace {
namespace {

TEST(Text, NumbersHaveOneSpelling) {
  EXPECT_EQ(util::read_unsigned("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(util::read_unsigned("18446744073709551616"), std::nullopt);
  EXPECT_EQ(util::read_unsigned("0"), 0u);
  EXPECT_EQ(util::read_unsigned("00"), std::nullopt);
  EXPECT_EQ(util::read_unsigned(""), std::nullopt);
  EXPECT_EQ(util::read_unsigned("11", 10), std::nullopt);
  EXPECT_EQ(util::read_signed("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(util::read_signed("-9223372036854775809"), std::nullopt);
  EXPECT_EQ(util::read_signed("+9223372036854775807"), INT64_MAX);
  EXPECT_EQ(util::read_signed("+9223372036854775808"), std::nullopt);
  EXPECT_EQ(util::read_signed("+0"), 0);
  EXPECT_EQ(util::read_signed("-0"), std::nullopt);
  EXPECT_EQ(util::read_signed("1"), std::nullopt);
  EXPECT_EQ(util::read_hex("ffffffffffffffff"), UINT64_MAX);
  EXPECT_EQ(util::read_hex("10000000000000000"), std::nullopt);
  EXPECT_EQ(util::read_hex("0f"), std::nullopt);
  EXPECT_EQ(util::read_hex("A"), std::nullopt);
  EXPECT_EQ(util::grouped(INT64_MIN), "-9,223,372,036,854,775,808");
  EXPECT_EQ(util::grouped(int64_t{999}, true), "+999");
  EXPECT_EQ(util::grouped(uint64_t{1000}), "1,000");
}

TEST(Text, PrintableIsWhatIsPrintableAtEachPlace) {
  for (int byte = 0; byte < 256; ++byte) {
    const bool plain = byte >= ' ' && byte < 0x7f;
    for (size_t place = 0; place < 19; ++place) {
      std::string text(19, ' ');
      text[place] = static_cast<char>(byte);
      EXPECT_EQ(util::is_printable(text, false), plain) << byte << " at " << place;
      EXPECT_EQ(util::is_printable(text, true), plain || byte == '\t') << byte;
    }
  }
  EXPECT_TRUE(util::is_printable("", false));
}

TEST(Text, BytesForPeople) {
  text::Style style;
  EXPECT_EQ(text::bytes_text(-1536, style), "-1536 bytes");
  style.units = true;
  EXPECT_EQ(text::bytes_text(1023, style), "+1023 bytes");
  EXPECT_EQ(text::bytes_text(1024, style), "+1.0 KiB");
  EXPECT_EQ(text::bytes_text(-1536, style), "-1.5 KiB");
  EXPECT_EQ(text::bytes_text(1048575, style, false), "1.0 MiB");
  EXPECT_EQ(text::bytes_text(INT64_MIN, style), "-8.0 EiB");
}

const cli::Manual kManual = {
    "do", "things", "", "", {{"--depth", "-d", "N", ""}, {"--all", "-a", "", ""}}, "", ""};

TEST(Arguments, AreReadInEachForm) {
  const cli::Arguments arguments(kManual, {"a", "-d3", "--all", "-", "--depth=4", "--", "-d"});
  EXPECT_EQ(arguments.values("--depth"), (std::vector<std::string>{"3", "4"}));
  EXPECT_EQ(arguments.number("--depth", 0, 1, 9), 4);
  EXPECT_TRUE(arguments.has("--all"));
  EXPECT_EQ(arguments.operands(), (std::vector<std::string>{"a", "-", "-d"}));
  EXPECT_THROW(arguments.number("--depth", 0, 5, 9), cli::UsageError);
  EXPECT_THROW(cli::Arguments(kManual, {"-ax"}), cli::UsageError);
  EXPECT_THROW(cli::Arguments(kManual, {"-d"}), cli::UsageError);
  EXPECT_EQ(cli::nearest("reprot", {"report", "resolve"}), "report");
  EXPECT_EQ(cli::nearest("re", {"report"}), "report");
  EXPECT_EQ(cli::nearest("xyzzy", {"report", "show"}), "");
  EXPECT_EQ(cli::nearest("foo", {"top", "run"}), "") << "one letter of three is the same";
  EXPECT_EQ(cli::nearest("tpo", {"run", "top"}), "top");
  EXPECT_EQ(cli::nearest("shwo", {"show"}), "show");
  EXPECT_EQ(cli::nearest("--jsn", {"--json", "--sum"}), "--json");
}

profile::Memlog entry(int64_t bytes, const std::vector<std::string>& frames,
                      const std::string& after = "") {
  std::string text = test::small_memlog(frames, after);
  const std::string number = (bytes < 0 ? "" : "+") + std::to_string(bytes);
  for (const char* old : {"delta: +64", "\n+64"}) {
    const size_t at = text.find(old);
    text.replace(text.find("+64", at), 3, number);
  }
  return profile::read("f", text);
}

TEST(Table, MergesStacksThatAgreeInTheirFirstFrames) {
  analyze::Table table;
  table.merge(entry(100, {"f\ta.c:1\t(inlined)", "g\ta.c:2\t(/a+0x1)", "(/a+0x2)"}),
              analyze::innermost(1));
  table.merge(entry(-30, {"(/a+0x1)", "(/a+0x3)"}), analyze::innermost(1));
  table.merge(entry(7, {"(/a+0x1)"}), analyze::innermost(1));
  table.merge(entry(5, {"(/b+0x1)"}), analyze::innermost(1));
  ASSERT_EQ(table.rows().size(), 2u);
  EXPECT_EQ(table.rows()[0].bytes, 77);
  EXPECT_EQ(table.rows()[0].frames.size(), 2u);  // the inlined frame belongs to the first
  EXPECT_TRUE(table.rows()[0].cut);
  EXPECT_EQ(table.rows()[1].bytes, 5);
  EXPECT_FALSE(table.rows()[1].cut);
}

TEST(Table, EqualIdsDoNotMergeDifferentStacks) {
  // small_memlog() gives each stack the same id.
  analyze::Table table;
  table.merge(entry(1, {"(/a+0x1)"}), {});
  table.merge(entry(2, {"(/a+0x2)"}), {});
  table.merge(entry(4, {"(/a+0x1)"}), {});
  table.merge(entry(8, {"(/a+0x1)", "..."}), {});
  ASSERT_EQ(table.rows().size(), 3u);
  EXPECT_EQ(table.rows()[0].bytes, 5);
  EXPECT_EQ(table.rows()[1].bytes, 2);
  EXPECT_EQ(table.rows()[2].bytes, 8);
}

TEST(Table, AModuleIsItsBuildIdWhereItHasOne) {
  const std::string here = "# module: /a build-id=aa base=0x0\n";
  const std::string moved = "# module: /b build-id=aa base=0x0\n";
  const std::string other = "# module: /a build-id=bb base=0x0\n";
  analyze::Table table;
  table.merge(entry(1, {"(/a+0x1)"}, here), {});
  table.merge(entry(2, {"(/b+0x1)"}, moved), {});
  table.merge(entry(4, {"(/a+0x1)"}, other), {});
  ASSERT_EQ(table.rows().size(), 2u);
  EXPECT_EQ(table.rows()[0].bytes, 3);
}

TEST(Table, SumsThatDoNotFitAreNoticed) {
  analyze::Table table;
  table.merge(entry(INT64_MAX, {"(/a+0x1)"}), {});
  EXPECT_THROW(table.merge(entry(1, {"(/a+0x1)"}), {}), std::runtime_error);
}

TEST(PerfMap, LastOfOverlappingEntries) {
  const symbols::PerfMap map(
      "1000 100 outer\n1010 10 inner\n0x2000 20 name with spaces\n"
      "0000000000003000 A upper\nffffffffffffffff 10 over\nx y z\n\n");
  ASSERT_NE(map.find(0x1015), nullptr);
  EXPECT_EQ(*map.find(0x1015), "inner");
  EXPECT_EQ(*map.find(0x1020), "outer");
  EXPECT_EQ(*map.find(0x201f), "name with spaces");
  EXPECT_EQ(*map.find(0x3009), "upper");
  EXPECT_EQ(map.find(0x300a), nullptr);
  EXPECT_EQ(map.find(0xfff), nullptr);
  EXPECT_EQ(map.find(UINT64_MAX), nullptr);
}

TEST(Demangle, LeavesWhatIsNotMangled) {
  EXPECT_EQ(symbols::demangle("main"), "main");
  EXPECT_EQ(symbols::demangle("__GI_puts"), "puts");
  EXPECT_EQ(symbols::demangle("__GI_"), "__GI_");
  EXPECT_EQ(symbols::demangle("foo__Fi"), "foo__Fi");
  EXPECT_EQ(symbols::demangle("_Z"), "_Z");
  EXPECT_EQ(symbols::demangle(""), "");
  EXPECT_EQ(symbols::demangle("_ZN1a1bEv.cold"), "a::b() [clone .cold]");
  EXPECT_EQ(symbols::demangle("_ZNSt6vectorIiSaIiEE9push_backERKi"),
            "std::vector<int, std::allocator<int> >::push_back(int const&)");
}

TEST(SourcePaths, SplitsALine) {
  using symbols::split_source;
  EXPECT_EQ(split_source("a.c:12"), (std::pair<std::string, uint64_t>("a.c", 12)));
  EXPECT_EQ(split_source("a:b.c:7"), (std::pair<std::string, uint64_t>("a:b.c", 7)));
  EXPECT_EQ(split_source("a.c"), (std::pair<std::string, uint64_t>("a.c", 0)));
  EXPECT_EQ(split_source("a.c:x"), (std::pair<std::string, uint64_t>("a.c:x", 0)));
}

TEST(Worker, ReturnsTheWholeResult) {
  const std::string large(300000, 'x');
  EXPECT_EQ(symbols::run_isolated([&] { return large; }, 10), large);
  EXPECT_EQ(symbols::run_isolated([] { return std::string(); }, 10), "");
}

// A lock or a listening socket of this process must not outlive it in a child.
TEST(Worker, HasOnlyTheFileThatTheWorkIsAbout) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const util::Descriptor one(ends[0]);
  const util::Descriptor other(ends[1]);
  const auto open_in_child = [&](int descriptor) {
    const auto work = [&] {
      std::string open;
      for (const int end : ends) open += ::fcntl(end, F_GETFD) < 0 ? "-" : "+";
      return open;
    };
    return symbols::run_isolated(work, 10, descriptor).value_or("died");
  };
  EXPECT_EQ(open_in_child(-1), "--");
  EXPECT_EQ(open_in_child(one.get()), "+-");
  EXPECT_EQ(open_in_child(other.get()), "-+");
  EXPECT_EQ(open_in_child(STDERR_FILENO), "--");
}

TEST(Worker, SurvivesWhateverTheWorkDoes) {
  EXPECT_EQ(symbols::run_isolated(
                []() -> std::string {
                  std::raise(SIGSEGV);
                  return "x";
                },
                10),
            std::nullopt);
  EXPECT_EQ(symbols::run_isolated([]() -> std::string { ::_exit(0); }, 10), std::nullopt);
  EXPECT_EQ(symbols::run_isolated([]() -> std::string { throw std::runtime_error("x"); }, 10),
            std::nullopt);
  EXPECT_EQ(symbols::run_isolated(
                []() -> std::string {
                  for (;;) asm volatile("");
                },
                1),
            std::nullopt);
  // Who ignores SIGCHLD has no exit status to ask for.
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  EXPECT_EQ(symbols::run_isolated([] { return std::string("y"); }, 10), "y");
  EXPECT_EQ(symbols::run_isolated(
                []() -> std::string {
                  std::raise(SIGKILL);
                  return "x";
                },
                10),
            std::nullopt);
  std::signal(SIGCHLD, before);
}

TEST(File, ReplacedThroughALinkWithItsMode) {
  test::TemporaryDirectory directory;
  test::write_file(directory / "file", "old");
  std::filesystem::permissions(directory / "file", std::filesystem::perms(0640));
  std::filesystem::create_symlink("file", directory / "link");
  util::replace_file(directory / "link", "new");
  EXPECT_EQ(test::read_file(directory / "file"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(directory / "link"));
  EXPECT_EQ(std::filesystem::status(directory / "file").permissions(),
            std::filesystem::perms(0640));
  util::replace_file(directory / "fresh", "x");
  EXPECT_EQ(std::filesystem::status(directory / "fresh").permissions(),
            std::filesystem::perms(0600));
  EXPECT_THROW(util::replace_file(directory / "none/file", "x"), util::FileError);
  EXPECT_THROW(util::read_file(directory.path()), util::FileError);
}

TEST(File, WhatIsNoRegularFileIsWrittenToAndStays) {
  test::TemporaryDirectory directory;
  const std::string pipe = directory / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int both_ends = ::open(pipe.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(both_ends, 0);
  for (const std::string& name : {pipe, directory / "link"}) {
    if (name != pipe) std::filesystem::create_symlink("pipe", name);
    util::replace_file(name, "text");
    char text[8] = {};
    EXPECT_EQ(::read(both_ends, text, sizeof text), 4);
    EXPECT_STREQ(text, "text");
    EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  }
  ::close(both_ends);
  EXPECT_THROW(util::replace_file(directory.path(), "x"), util::FileError);
}

TEST(Catalog, LastReportOfTheProcessStartedLast) {
  test::TemporaryDirectory directory;
  const auto add = [&](const std::string& name, const std::string& day, int64_t seq) {
    std::string text = test::small_memlog({}, "", seq);
    text.replace(text.find("2026-11-20"), 10, day);
    test::write_file(directory / name, text);
  };
  EXPECT_EQ(reports::newest_report(directory.path()), std::nullopt);
  add("old-1-99.memlog", "2026-11-20", 99);
  add("new-1-9.memlog", "2026-11-21", 9);
  add("new-1-10.memlog", "2026-11-21", 10);
  add("new-1-11.txt", "2026-11-21", 11);
  test::write_file(directory / "empty.memlog", "");
  test::write_file(directory / "foreign.memlog", "hello\n");
  EXPECT_EQ(reports::newest_report(directory.path()), directory / "new-1-10.memlog");
  EXPECT_THROW(reports::newest_report(directory / "none"), util::FileError);
}

}  // namespace
}  // namespace mtrace
