// memlog export -f html: what the page's script is given.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tool_test.h"

namespace mtrace::test {
namespace {

using nlohmann::json;

json data_of(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const size_t at = page.find(begin);
  EXPECT_NE(at, std::string::npos);
  const size_t from = at + begin.size();
  return json::parse(page.substr(from, page.find("</script>", from) - from));
}

json page_of(std::vector<std::string> words) {
  words.insert(words.begin(), {"export", "-f", "html", "--no-resolve"});
  const Outcome result = memlog(words);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return data_of(result.out);
}

// Bytes of all stacks, or of those with this name, at a state.
int64_t bytes_at(const json& data, size_t state, const std::string& name = "") {
  int64_t sum = 0;
  for (const json& stack : data["stacks"]) {
    const json& innermost =
        data["names"][data["frames"][stack[1][0].get<size_t>()][0].get<size_t>()];
    if (!name.empty() && innermost != name) continue;
    int64_t bytes = 0;
    for (size_t i = 0; i < stack[2].size() && stack[2][i] <= state; i += 3) bytes = stack[2][i + 1];
    sum += bytes;
  }
  return sum;
}

constexpr char kUnlisted[] = "in stacks that these reports do not list";

TEST(ReportPage, StacksAddUpToWhatIsLive) {
  const json data = page_of({golden("app-4711-2.memlog"), golden("app-4711-1.memlog")});
  ASSERT_EQ(data["reports"].size(), 2u);
  EXPECT_EQ(data["reports"][0]["seq"], 1);
  EXPECT_EQ(bytes_at(data, 0), 0);
  for (size_t i = 0; i < 2; ++i) {
    const std::string live = shell("sed -n 's/^# live: \\([0-9]*\\) bytes.*/\\1/p' {}",
                                   golden(fmt::format("app-4711-{}.memlog", i + 1)));
    EXPECT_EQ(data["reports"][i]["live"], std::stoll(live));
    EXPECT_EQ(bytes_at(data, i + 1), std::stoll(live));
  }
  EXPECT_EQ(data["before"], false);
  EXPECT_EQ(data["blocks"], true);
  EXPECT_EQ(data["remarks"], json::array());
  // As `live=` of its last entry has it.
  EXPECT_EQ(bytes_at(data, 2, "g_realloc"), 190080 + 1536);
}

// A program that held 1,000 bytes at its peak, 300 of them of `keeps`, and 400 at its end.
std::string batch(const std::string& trigger) {
  return fmt::format(
      "# memlog 2\n# program: /bin/app\n# pid: 3\n# seq: 1\n# trigger: {}\n"
      "# started: 2026-11-20T20:15:00.000000Z\n# taken: 2026-11-20T20:15:31.123456Z\n"
      "# delta: +400 bytes +4 blocks\n# live: 400 bytes 4 blocks\n"
      "# peak: 1000 bytes 2026-11-20T20:15:20.000000Z\n"
      "# lost: frames=0 stacks=0 blocks=0 inflight=0\n"
      "+400\tblocks=+4\tlive=400\tpeak=300\tstack=0000000000000001\n\tkeeps\t(/bin/app+0x1)\n"
      "+0\tblocks=+0\tlive=0\tpeak=650\tstack=0000000000000002\n\tfrees\t(/bin/app+0x2)\n"
      "# end\n",
      trigger);
}

int64_t peak_of(const json& data, const std::string& name) {
  int64_t sum = 0;
  for (const json& stack : data["stacks"]) {
    const json& frame = data["frames"][stack[1][0].get<size_t>()];
    if (data["names"][frame[0].get<size_t>()] == name) sum += stack[3].get<int64_t>();
  }
  return sum;
}

TEST(ReportPage, HasThePeakAndOpensOnItForABatchProgram) {
  TemporaryDirectory directory;
  const std::string file = directory / "app-3-1.memlog";
  write_file(file, batch("exit"));
  const json data = page_of({file});
  EXPECT_EQ(
      data["peak"],
      json::parse(R"({"bytes": 1000, "time": "2026-11-20T20:15:20.000000Z", "first": true})"));
  EXPECT_EQ(peak_of(data, "keeps"), 300);
  EXPECT_EQ(peak_of(data, "frees"), 650);
  // The rest of the 1,000.
  EXPECT_EQ(peak_of(data, kUnlisted), 50);
  // A service that was asked: its reports come first, unless the user wishes otherwise.
  write_file(file, batch("signal"));
  EXPECT_EQ(page_of({file})["peak"]["first"], false);
  EXPECT_EQ(page_of({"--peak", file})["peak"]["first"], true);
}

TEST(ReportPage, WhatReportsDoNotListStandsForItself) {
  const json data = page_of({golden("app-4711-2.memlog")});
  EXPECT_EQ(data["remarks"], json::array({"missing: report 1"}));
  EXPECT_EQ(data["before"], true);
  EXPECT_EQ(data["blocks"], false);
  const auto live = data["reports"][0]["live"].get<int64_t>();
  const auto delta = data["reports"][0]["delta"].get<int64_t>();
  EXPECT_EQ(bytes_at(data, 1), live);
  EXPECT_EQ(bytes_at(data, 0), live - delta);
  // The sums of `live=`, which is 190,080 + 3,000 + 1,536 + 100 + 2,000, and of that less the
  // change.
  EXPECT_EQ(bytes_at(data, 1, kUnlisted), live - 196716);
  EXPECT_EQ(bytes_at(data, 0, kUnlisted), live - 196716);
}

TEST(ReportPage, WhatRuntimesKeepIsFolded) {
  TemporaryDirectory directory;
  const std::string file = directory / "one.memlog";
  write_file(file, small_memlog({"_IO_file_doallocate\t(/usr/lib/libc.so.6+0x99)",
                                 "main\tapp.c:42\t(/usr/bin/app+0x1110)"}));
  const json data = page_of({file});
  EXPECT_EQ(data["keptByRuntimes"], "kept by runtimes");
  EXPECT_EQ(data["stacks"][0][1].size(), 2u) << "all frames";
  EXPECT_TRUE(data["stacks"][0][4].is_null()) << data["stacks"];
  EXPECT_EQ(bytes_at(data, 1), 64);
}

TEST(ReportPage, AFilterLeavesOutAndSaysSo) {
  const json data =
      page_of({"-i", "cache_put", golden("app-4711-1.memlog"), golden("app-4711-2.memlog")});
  EXPECT_EQ(bytes_at(data, 2), 3000 + 2000);
  // The two files have twelve entries, four of them of cache_put; 196,716 bytes are live.
  EXPECT_EQ(data["remarks"],
            json::array({"filters have left out 8 of the reports' entries, net +191,716 bytes"}));
}

TEST(ReportPage, ReportsThatAreNotAskedForStillCount) {
  const json data =
      page_of({"--seq", "2", golden("app-4711-1.memlog"), golden("app-4711-2.memlog")});
  ASSERT_EQ(data["reports"].size(), 1u);
  EXPECT_EQ(data["reports"][0]["seq"], 2);
  EXPECT_EQ(bytes_at(data, 1), data["reports"][0]["live"].get<int64_t>());
}

TEST(ReportPage, WithoutOperandsItIsAboutTheProcessOfTheNewestReport) {
  const std::filesystem::path before = std::filesystem::current_path();
  ::unsetenv("MTRACE_OUTPUT");
  TemporaryDirectory directory;
  for (const char* name : {"app-4711-1.memlog", "app-4711-2.memlog", "app-4600-1.memlog"}) {
    std::filesystem::copy_file(golden(name), directory / name);
  }
  std::filesystem::current_path(directory.path());
  const json data = page_of({});
  std::filesystem::current_path(before);
  EXPECT_EQ(data["pid"], 4711);
  EXPECT_EQ(data["reports"].size(), 2u);
}

TEST(ReportPage, TheSmallestOfManyStacksAreOnePlace) {
  constexpr int kStacks = 20005;
  std::string entries;
  int64_t sum = 0;
  for (int i = kStacks; i > 0; --i) {
    sum += i;
    entries += fmt::format("+{0}\tblocks=+1\tlive={0}\tstack={0:016x}\n\t(/bin/app+0x{0:x})\n", i);
  }
  TemporaryDirectory directory;
  write_file(directory / "many.memlog",
             fmt::format("# memlog 2\n# program: /bin/app\n# pid: 3\n# seq: 1\n# trigger: signal\n"
                         "# started: 2026-11-20T20:15:00.000000Z\n"
                         "# taken: 2026-11-20T20:15:31.123456Z\n"
                         "# delta: +{0} bytes +{1} blocks\n# live: {0} bytes {1} blocks\n"
                         "# lost: frames=0 stacks=0 blocks=0 inflight=0\n{2}# end\n",
                         sum, kStacks, entries));
  const json data = page_of({directory / "many.memlog"});
  EXPECT_EQ(data["stacks"].size(), 20001u);
  EXPECT_EQ(bytes_at(data, 1), sum);
  EXPECT_EQ(bytes_at(data, 1, "in 5 places"), 1 + 2 + 3 + 4 + 5);
}

TEST(ReportPage, ANumberThatABrowserCannotCountIsRefused) {
  std::string text = small_memlog({"main\t(/bin/app+0x20)"});
  for (size_t at; (at = text.find("64")) != std::string::npos;) {
    text.replace(at, 2, "9007199254740993");
  }
  TemporaryDirectory directory;
  write_file(directory / "huge.memlog", text);
  const Outcome result = memlog(
      {"export", "-f", "html", "--no-resolve", "-o", directory / "x", directory / "huge.memlog"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err, "memlog: 9,007,199,254,740,993 is too large for a page\n");
  EXPECT_FALSE(std::filesystem::exists(directory / "x"));
}

// What the script shows as text may not leave the element that holds it.
TEST(ReportPage, NamesStayInsideTheirElement) {
  TemporaryDirectory directory;
  write_file(directory / "x.memlog",
             small_memlog({"</script><!--\u2028\u2029&\t(/bin/<b>+0x20)"},
                          "# note: 2026-11-20T20:15:00.000000Z </script>\n"));
  const Outcome result = memlog({"export", "-f", "html", "--no-resolve", directory / "x.memlog"});
  ASSERT_EQ(result.status, 0) << result.err;
  const size_t begin = result.out.find("id=\"data\">") + 10;
  const std::string data = result.out.substr(begin, result.out.find("\n", begin) - begin);
  EXPECT_TRUE(data.ends_with("}</script>"));
  EXPECT_EQ(data.find('<'), data.size() - 9);
  for (const char c : data) EXPECT_GE(c, ' ') << data;
  EXPECT_EQ(data_of(result.out)["names"][0], "</script><!--\u2028\u2029&");
}

}  // namespace
}  // namespace mtrace::test
