// memlog export: the pictures and the page in Chromium, and speedscope's file in speedscope. One
// run of the browser (browser.cjs) does what a user does and tells what is to be seen then; here
// that is compared with the numbers that the reports were made of.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tool_test.h"
#include "util/text.h"

namespace mtrace::test {
namespace {

using nlohmann::json;
using util::grouped;

constexpr size_t kReports = 5;
struct Known {
  const char* name;
  const char* callers;                 // lines of frames
  std::array<int64_t, kReports> live;  // bytes, in blocks of 100
};
constexpr char kServe[] =
    "\tserve\tserve.c:20\t(/usr/bin/svc+0x700)\n\tmain\tmain.c:9\t(/usr/bin/svc+0x900)\n";
constexpr char kMain[] = "\tmain\tmain.c:9\t(/usr/bin/svc+0x900)\n";
constexpr std::array<Known, 4> kStacks = {{
    {"start", kMain, {50000, 50000, 50000, 50000, 48000}},
    {"leaky", kServe, {1000, 3000, 5000, 7000, 9000}},
    {"cache", kServe, {0, 4000, 6000, 6500, 6500}},
    {"swing", kMain, {800, 200, 900, 300, 0}},
}};

int64_t live_at(size_t report, const Known& stack) {
  return report == 0 ? 0 : stack.live[report - 1];
}
int64_t live_at(size_t report) {
  int64_t sum = 0;
  for (const Known& stack : kStacks) sum += live_at(report, stack);
  return sum;
}
int64_t peak_at(size_t report) {
  int64_t most = 0;
  for (size_t i = 1; i <= report; ++i) most = std::max(most, live_at(i));
  return most + 1000;
}

int64_t resident_at(size_t report) {
  return 2 * peak_at(report) + 100 * static_cast<int64_t>(report);
}

std::string report_text(size_t report) {
  const int64_t delta = live_at(report) - live_at(report - 1);
  std::string out = fmt::format(
      "# memlog 2\n# program: /usr/bin/svc\n# pid: 77\n# seq: {0}\n# trigger: signal\n"
      "# label: round-{0}\n# started: 2026-11-20T20:00:00.000000Z\n"
      "# taken: 2026-11-20T20:00:{0}0.000000Z\n# delta: {1:+} bytes {2:+} blocks\n"
      "# live: {3} bytes {4} blocks\n# peak: {5} bytes 2026-11-20T20:00:00.000000Z\n"
      "# lost: frames=0 stacks=0 blocks=0 inflight=0\n",
      report, delta, delta / 100, live_at(report), live_at(report) / 100, peak_at(report));
  std::vector<std::pair<int64_t, std::string>> entries;
  for (size_t i = 0; i < kStacks.size(); ++i) {
    const Known& stack = kStacks[i];
    const int64_t change = live_at(report, stack) - live_at(report - 1, stack);
    if (change == 0) continue;
    entries.emplace_back(-change, fmt::format("{0:+}\tblocks={1:+}\tlive={2}\tstack={3:016x}\n"
                                              "\t{4}\t{4}.c:3\t(/usr/bin/svc+0x{3}00)\n{5}",
                                              change, change / 100, live_at(report, stack), i + 1,
                                              stack.name, stack.callers));
  }
  std::sort(entries.begin(), entries.end());
  for (const auto& [order, entry] : entries) out += entry;
  return out + "# module: /usr/bin/svc build-id=5c05 base=0x55d0c0a00000\n# rss: " +
         std::to_string(resident_at(report)) + " bytes\n# uptime: " + std::to_string(report) +
         "0.000 seconds\n# resolved: yes\n# end\n";
}

// What a browser must not take for markup, script or the end of one.
constexpr char kHostile[] =
    "</script><script>harmed=true</script><!--<script>]]><b "
    "onload='harmed=true'>&amp;\"\u2028\uffff";

// A program that ran for less than a second: what it allocated and freed, its threads, the sizes of
// its blocks, a deep stack.
std::string views_text() {
  std::string deep;
  for (int i = 0; i < 30; ++i) deep += fmt::format("\tdeep{0}\t(/usr/bin/svc+0x2{0:02})\n", i);
  return fmt::format(
      "# memlog 2\n# program: /usr/bin/svc\n# command: svc --name a\\x20b\n# pid: 78\n# seq: 1\n"
      "# trigger: signal\n# started: 2026-11-20T20:00:00.000000Z\n"
      "# taken: 2026-11-20T20:00:00.900000Z\n# delta: +9450 bytes +102 blocks\n"
      "# live: 9450 bytes 102 blocks\n# peak: 10000 bytes 2026-11-20T20:00:00.400000Z\n"
      "# lost: frames=0 stacks=0 blocks=0 inflight=0\n"
      "+6400\tblocks=+100\tlive=6400\tallocs=100\tallocated=6400\tpeak=6400\t"
      "stack=0000000000000001\n\tkeeper\tkeeper.c:2\t(/usr/bin/svc+0x300)\n{0}"
      "+3000\tblocks=+1\tlive=3000\tallocs=1\tallocated=3000\tpeak=3000\t"
      "stack=0000000000000002\n\tbuffer\tbuffer.c:2\t(/usr/bin/svc+0x400)\n"
      "\tworker\tworker.c:5\t(/usr/bin/svc+0x500)\n"
      "\tstart_thread\t(/lib/libc.so.6+0x600)\n"
      "+50\tblocks=+1\tlive=50\tallocs=1\tallocated=50\tpeak=50\tstack=0000000000000003\n{1}{0}"
      "+0\tblocks=+0\tlive=0\tallocs=1000\tallocated=32000\tfrees=1000\tfreed=32000\t"
      "temporary=800\tlifetime-min=1\tlifetime-mean=5\tlifetime-max=9\tpeak=550\t"
      "stack=0000000000000004\n\tscratch\tscratch.c:7\t(/usr/bin/svc+0x800)\n{0}"
      "# end\n",
      kMain, deep);
}

// A process that has run for 100 s, and the timeline that memlog run has written of it.
std::string running_text() {
  return fmt::format(
      "# memlog 2\n# program: /usr/bin/svc\n# pid: 79\n# seq: 1\n# trigger: signal\n"
      "# started: 2026-11-20T20:00:00.000000Z\n# taken: 2026-11-20T20:01:40.000000Z\n"
      "# delta: +3000 bytes +1 blocks\n# live: 3000 bytes 1 blocks\n"
      "# lost: frames=0 stacks=0 blocks=0 inflight=0\n"
      "+3000\tblocks=+1\tlive=3000\tstack=0000000000000002\n\tbuffer\t(/usr/bin/svc+0x400)\n{}"
      "# uptime: 100.000 seconds\n# end\n",
      kMain);
}
constexpr char kCutTimeline[] =
    "# timeline 1\n# program: /usr/bin/svc\n# pid: 79\n# started: 2026-11-20T20:00:00.000000Z\n"
    "# interval: 1000 ms\n# columns: milliseconds live blocks resident allocations\n"
    "1000\t1000\t1\t50000\t1\n41000\t2000\t1\t60000\t1\n81000\t3000\t1\t60000\t1\n"
    "82000\t3000\t1\t60000\t1\n# end\n";

// The page `views` as --sizes makes it: with the sizes of the 100 blocks of `keeper`.
std::string with_sizes(const std::string& page) {
  const size_t begin = page.find("id=\"data\">") + std::strlen("id=\"data\">");
  const size_t end = page.find("</script>", begin);
  json data = json::parse(page.substr(begin, end - begin));
  for (json& stack : data["stacks"]) {
    if (stack[0] == "0000000000000001") stack[7] = json::parse("[1, [4, 80, 800, 9, 20, 5600]]");
  }
  data["exactSizes"] = true;
  return page.substr(0, begin) + data.dump() + page.substr(end);
}

class Browser : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const std::string modules = build_dir() + "/npm/node_modules";
    for (const char* module : {"/playwright-core", "/speedscope"}) {
      if (std::filesystem::exists(modules + module)) continue;
      lacking_ = fmt::format("make deps could not get {} from the npm registry", module + 1);
      return;
    }
    if (!std::filesystem::exists("/usr/bin/chromium")) {
      lacking_ = "make deps could not install chromium";
      return;
    }
    const TemporaryDirectory directory;
    std::vector<std::string> reports;
    for (size_t i = 1; i <= kReports; ++i) {
      reports.push_back(directory / fmt::format("svc-77-{}.memlog", i));
      write_file(reports.back(), report_text(i));
    }
    write_file(
        directory / "hostile.memlog",
        small_memlog({std::string(kHostile) + "\t(/lib/a.so+0x10)", "main\t(/bin/app+0x20)"}));
    const auto write = [&](const char* format, const char* file, std::vector<std::string> words) {
      words.insert(words.begin(), {"export", "--no-resolve", "-f", format, "-o", directory / file});
      const Outcome result = memlog(words);
      EXPECT_EQ(result.status, 0) << result.err;
      EXPECT_EQ(result.err, "");
    };
    write("flamegraph", "graph.svg", reports);
    write("flamegraph", "base.svg", {"--base", reports[1], reports[4]});
    write("flamegraph", "hostile.svg", {"--frames", "all", directory / "hostile.memlog"});
    write("html", "page.html", reports);
    write_file(directory / "svc-78-1.memlog", views_text());
    write_file(directory / "svc-79-1.memlog", running_text());
    write_file(directory / "svc-79.timeline", kCutTimeline);
    write("html", "cut.html", {directory / "svc-79-1.memlog"});
    write_file(directory / "buffer.c", "one\n\ttwo(\"\\n\");  // \xff\nthree\n");
    write("html", "views.html",
          {"--source", "--source-path", directory.path(), directory / "svc-78-1.memlog"});
    write_file(directory / "exact.html", with_sizes(read_file(directory / "views.html")));
    write("html", "hostile.html", {"--frames", "all", directory / "hostile.memlog"});
    write("speedscope", "scope.json", reports);
    facts_ =
        json::parse(shell("NODE_PATH={0} node {1}/tests/unit/tool/browser.cjs {2} {0}/speedscope",
                          modules, source_dir(), directory.path()),
                    nullptr, false);
  }
  void SetUp() override {
    ASSERT_EQ(lacking_, "");
    ASSERT_TRUE(facts_.is_object());
  }

  static json facts_;
  static std::string lacking_;
};

json Browser::facts_;
std::string Browser::lacking_;

// By name; the last component of the title's first line.
const json& box(const json& boxes, const std::string& name) {
  static const json none;
  for (const json& one : boxes) {
    if (one["title"].get<std::string>().starts_with(name + "\n")) return one;
  }
  ADD_FAILURE() << "no box " << name << " in " << boxes;
  return none;
}

std::vector<std::string> names(const json& boxes) {
  std::vector<std::string> out;
  for (const json& one : boxes) {
    const auto title = one["title"].get<std::string>();
    out.push_back(title.substr(0, title.find('\n')));
  }
  std::sort(out.begin(), out.end());
  return out;
}

void expect_width(const json& boxes, const std::string& name, int64_t part, int64_t whole) {
  EXPECT_NEAR(box(boxes, name)["width"].get<double>(),
              static_cast<double>(part) / static_cast<double>(whole), 0.0005)
      << name;
}

using Names = std::vector<std::string>;

TEST_F(Browser, NothingIsAskedForAndNothingGoesWrong) {
  for (const char* part :
       {"graph", "still", "base", "report", "views", "hostileSvg", "hostilePage"}) {
    EXPECT_EQ(facts_[part]["problems"], json::array()) << part;
    ASSERT_EQ(facts_[part]["requests"].size(), 1u) << part << facts_[part]["requests"];
  }
}

TEST_F(Browser, WidthsAndTooltipsOfTheFlameGraphAreTheBytes) {
  const json& boxes = facts_["graph"]["start"];
  EXPECT_EQ(names(boxes), (Names{"all", "cache", "leaky", "main", "serve", "start"}));
  EXPECT_EQ(box(boxes, "all")["title"], "all\n63,500 bytes (100.00%), 635 blocks");
  EXPECT_EQ(box(boxes, "serve")["title"], "serve\n15,500 bytes (24.41%), 155 blocks");
  EXPECT_EQ(box(boxes, "leaky")["title"], "leaky\n9,000 bytes (14.17%), 90 blocks");
  EXPECT_EQ(box(boxes, "leaky")["label"], "leaky");
  for (const auto& [name, bytes] : std::map<std::string, int64_t>{
           {"all", 63500}, {"start", 48000}, {"serve", 15500}, {"cache", 6500}, {"leaky", 9000}}) {
    expect_width(boxes, name, bytes, 63500);
  }
  EXPECT_NEAR(box(boxes, "serve")["x"].get<double>(), 48000.0 / 63500, 0.0005);
}

TEST_F(Browser, TheFlameGraphZooms) {
  const json& graph = facts_["graph"];
  EXPECT_EQ(names(graph["zoomed"]), (Names{"all", "cache", "leaky", "main", "serve"}));
  for (const char* name : {"all", "main", "serve"}) expect_width(graph["zoomed"], name, 1, 1);
  expect_width(graph["zoomed"], "leaky", 9000, 15500);
  expect_width(graph["zoomed"], "cache", 6500, 15500);
  EXPECT_EQ(graph["reset"], graph["start"]);
  EXPECT_EQ(graph["byKeys"], graph["zoomed"]);
  EXPECT_EQ(graph["told"], "serve: 15,500 bytes (24.41%), 155 blocks");
  EXPECT_EQ(graph["escaped"], graph["start"]);
}

TEST_F(Browser, TheFlameGraphIsSearched) {
  const json& graph = facts_["graph"];
  // serve is in it with all below, start besides.
  EXPECT_EQ(graph["matched"], fmt::format("matched {:.2f}%", 100 * 15500.0 / 63500));
  Names found;
  for (const json& one : graph["searched"]) {
    if (one["match"]) found.push_back(one["label"]);
  }
  EXPECT_EQ(found, (Names{"serve", "leaky"}));
  EXPECT_NE(box(graph["searched"], "leaky")["colour"], box(graph["start"], "leaky")["colour"]);
  EXPECT_EQ(graph["refused"], "not a regular expression");
}

TEST_F(Browser, WithoutScriptsTheFlameGraphIsStillRead) {
  const json& still = facts_["still"];
  EXPECT_EQ(still["labels"], (Names{"all", "main", "start", "serve", "leaky", "cache"}));
  EXPECT_EQ(still["titles"][4], "leaky\n9,000 bytes (14.17%), 90 blocks");
  EXPECT_EQ(still["fields"], 0);
}

TEST_F(Browser, TheDifferenceIsRedAndBlue) {
  // From report 2 to 5 start and swing became less; 8,500 of 10,700 bytes that moved were growth.
  const json& boxes = facts_["base"]["boxes"];
  EXPECT_EQ(facts_["base"]["head"],
            (Names{"bytes of svc", "red grew 8,500 bytes in 2 stacks",
                   "blue shrank 2,200 bytes in 2 stacks",
                   "2026-11-20T20:00:20.000000Z to 2026-11-20T20:00:50.000000Z"}));
  EXPECT_EQ(box(boxes, "all")["title"],
            "all\n+6,300 bytes: grew 8,500, shrank 2,200 (100.00% of what moved), +63 blocks");
  EXPECT_EQ(box(boxes, "start")["title"],
            "start\n-2,000 bytes: grew 0, shrank 2,000 (18.69% of what moved), -20 blocks");
  expect_width(boxes, "leaky", 6000, 10700);
  expect_width(boxes, "start", 2000, 10700);
  const auto red_over_blue = [&](const char* name) {
    int red = 0;
    int green = 0;
    int blue = 0;
    const auto colour = box(boxes, name)["colour"].get<std::string>();
    EXPECT_EQ(std::sscanf(colour.c_str(), "rgb(%d, %d, %d)", &red, &green, &blue), 3) << colour;
    return red - blue;
  };
  EXPECT_GT(red_over_blue("leaky"), 60);
  EXPECT_GT(red_over_blue("main"), 10);
  EXPECT_GT(red_over_blue("leaky"), red_over_blue("main"));
  EXPECT_LT(red_over_blue("start"), -60);
}

TEST_F(Browser, TheTimelineHasTheSeries) {
  const json& timeline = facts_["report"]["timeline"];
  ASSERT_EQ(timeline["dots"].size(), kReports);
  const auto height = [&](size_t report) { return timeline["dots"][report - 1].get<double>(); };
  for (size_t i = 1; i <= kReports; ++i) {
    EXPECT_EQ(timeline["told"][i - 1],
              fmt::format("report {0} of 5, round-{0}: live {1} bytes, peak {2}, resident {3}, {4} "
                          "since the report before; {0}0.000 s after the start, 2026-11-20 "
                          "20:00:{0}0 UTC",
                          i, grouped(live_at(i)), grouped(peak_at(i)), grouped(resident_at(i)),
                          grouped(live_at(i) - live_at(i - 1), true)));
    // The curve has a point at each report, on the scale of the live bytes.
    const json& point = timeline["resident"].at(i - 1);
    const double scale = (height(1) - height(4)) / static_cast<double>(live_at(4) - live_at(1));
    EXPECT_NEAR(point.get<double>(),
                height(1) - scale * static_cast<double>(resident_at(i) - live_at(1)), 0.01);
    // Heights are as the bytes.
    const double share =
        static_cast<double>(live_at(i) - live_at(1)) / static_cast<double>(live_at(4) - live_at(1));
    EXPECT_NEAR(height(i), height(1) + share * (height(4) - height(1)), 0.01) << i;
    EXPECT_EQ(facts_["report"]["reports"][i - 1],
              (Names{std::to_string(i), fmt::format("{}0.000", i), grouped(live_at(i)),
                     grouped(peak_at(i)), grouped(live_at(i) - live_at(i - 1), true),
                     std::to_string(live_at(i) / 100), "signal", fmt::format("round-{}", i)}));
  }
  EXPECT_LT(height(4), height(1));
}

// As a row of the table of stacks has it, so that stacks of one function are told apart.
std::string path_of(const Known& stack) {
  return fmt::format("{0} {0}.c:3{1} < main main.c:9", stack.name,
                     stack.callers == kServe ? " < serve serve.c:20" : "");
}

// The rows of the table of stacks: those of `order`, with these numbers in front.
json live_rows(size_t report, const std::vector<size_t>& order) {
  json out = json::array();
  for (const size_t i : order) {
    const int64_t bytes = live_at(report, kStacks[i]);
    out.push_back({grouped(bytes),
                   fmt::format("{:.2f}%", 100 * static_cast<double>(bytes) /
                                              static_cast<double>(live_at(report))),
                   std::to_string(bytes / 100), path_of(kStacks[i])});
  }
  return out;
}

json changed_rows(size_t base, size_t report, const std::vector<size_t>& order, int64_t moved) {
  json out = json::array();
  for (const size_t i : order) {
    const int64_t before = live_at(base, kStacks[i]);
    const int64_t after = live_at(report, kStacks[i]);
    out.push_back({grouped(after - before, true),
                   fmt::format("{:.2f}%", 100 * std::fabs(static_cast<double>(after - before)) /
                                              static_cast<double>(moved)),
                   grouped((after - before) / 100, true), grouped(before), grouped(after),
                   path_of(kStacks[i])});
  }
  return out;
}

TEST_F(Browser, TheTableHasWhatIsLiveAtTheChosenReport) {
  const json& report = facts_["report"];
  EXPECT_EQ(report["chosen"], "4");
  EXPECT_EQ(report["live"]["rows"], live_rows(4, {0, 1, 2, 3}));
  EXPECT_EQ(report["ascending"], live_rows(4, {3, 2, 1, 0}));
  EXPECT_EQ(report["byName"], live_rows(4, {2, 1, 0, 3}));
  EXPECT_EQ(box(report["live"]["boxes"], "serve")["title"],
            "serve\n13,500 bytes (21.16%), 135 blocks");
  expect_width(report["live"]["boxes"], "serve", 13500, live_at(4));
  EXPECT_EQ(report["frames"],
            (Names{"leaky leaky.c:3 (svc)", "serve serve.c:20 (svc)", "main main.c:9 (svc)"}));
}

TEST_F(Browser, ThePageIsSearched) {
  const json& filtered = facts_["report"]["filtered"];
  EXPECT_EQ(filtered["rows"], live_rows(4, {1, 3}));
  EXPECT_EQ(filtered["text"], fmt::format("matched {:.2f}% in 2 stacks",
                                          100 * 7300.0 / static_cast<double>(live_at(4))));
  Names found;
  for (const json& one : filtered["boxes"]) {
    if (one["match"]) found.push_back(one["label"]);
  }
  EXPECT_EQ(found.size(), 2u) << filtered["boxes"];
}

TEST_F(Browser, AnyTwoReportsAreCompared) {
  const json& report = facts_["report"];
  EXPECT_EQ(report["base"], "2");
  EXPECT_EQ(report["compared"]["rows"], changed_rows(2, 4, {1, 2, 3}, 6600));
  EXPECT_EQ(report["compared"]["text"], "+6,600 bytes: grew 6,600 (red), shrank 0 (blue)");
  expect_width(report["compared"]["boxes"], "leaky", 4000, 6600);
  EXPECT_EQ(report["comparedOther"]["rows"], changed_rows(3, 5, {1, 2, 3, 0}, 7400));
  EXPECT_EQ(report["comparedOther"]["text"], "+1,600 bytes: grew 4,500 (red), shrank 2,900 (blue)");
}

TEST_F(Browser, AReportDoesNotDifferFromItself) {
  const json& same = facts_["report"]["same"];
  EXPECT_EQ(same["rows"], json::array());
  EXPECT_EQ(same["boxes"], json::array());
  EXPECT_EQ(same["text"], "+0 bytes: grew 0 (red), shrank 0 (blue)");
}

TEST_F(Browser, TheGraphHangsAndThePageIsDark) {
  const json& report = facts_["report"];
  EXPECT_EQ(box(report["icicle"], "all")["y"], 0);
  EXPECT_GT(box(report["compared"]["boxes"], "all")["y"],
            box(report["compared"]["boxes"], "leaky")["y"]);
  EXPECT_EQ(report["paper"][0], "rgb(253, 252, 249)");
  EXPECT_EQ(report["paper"][1], "rgb(23, 25, 29)");
}

// Report 5 compared with report 3; see AnyTwoReportsAreCompared.
TEST_F(Browser, TheTreeOpensToTheFunctions) {
  const json& report = facts_["report"];
  EXPECT_EQ(report["besideTree"], false);
  const auto row = [](const char* name, const char* change, const char* grew, const char* shrank,
                      const char* share, const char* blocks) {
    return fmt::format("{} {} bytes: grew {}, shrank {} ({} of what moved), {} blocks", name,
                       change, grew, shrank, share, blocks);
  };
  EXPECT_EQ(report["tree"], (Names{row("all", "+1,600", "4,500", "2,900", "100.00%", "+16"),
                                   row("main", "+1,600", "4,500", "2,900", "100.00%", "+16"),
                                   row("serve", "+4,500", "4,500", "0", "60.81%", "+45"),
                                   row("leaky", "+4,000", "4,000", "0", "54.05%", "+40"),
                                   row("cache", "+500", "500", "0", "6.76%", "+5"),
                                   row("start", "-2,000", "0", "2,000", "27.03%", "-20"),
                                   row("swing", "-900", "0", "900", "12.16%", "-9")}));
}

// Rows of the table of stacks, in order.
void expect_rows(const json& shown, const std::vector<Names>& rows) {
  ASSERT_EQ(shown["rows"].size(), rows.size()) << shown["rows"];
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t column = 0; column < rows[i].size(); ++column) {
      EXPECT_EQ(shown["rows"][i][column], rows[i][column]) << i;
    }
  }
}

TEST_F(Browser, ThePageShowsWhatWasAllocatedAndFreed) {
  const json& views = facts_["views"];
  EXPECT_EQ(views["measures"],
            (Names{"live bytes", "held at the peak", "live blocks", "allocated bytes",
                   "allocations", "temporary allocations", "lifetime of freed blocks"}));
  const json& shown = views["shown"];
  expect_rows(shown["live"], {{"6,400", "67.72%", "100", "keeper keeper.c:2 < main main.c:9"},
                              {"3,000", "31.75%", "1", "buffer buffer.c:2 < worker worker.c:5"},
                              {"50", "0.53%", "1"}});
  expect_rows(shown["blocks"], {{"100", "98.04%", "6,400", "keeper keeper.c:2 < main main.c:9"},
                                {"1", "0.98%", "3,000"},
                                {"1", "0.98%", "50"}});
  expect_rows(shown["allocated"],
              {{"32,000", "77.20%", "1,000", "5 ms", "scratch scratch.c:7 < main main.c:9"},
               {"6,400", "15.44%", "100", "", "keeper keeper.c:2 < main main.c:9"},
               {"3,000", "7.24%", "1", ""},
               {"50", "0.12%", "1", ""}});
  expect_rows(shown["allocations"],
              {{"1,000", "90.74%", "32,000", "5 ms", "scratch scratch.c:7 < main main.c:9"},
               {"100", "9.07%", "6,400"},
               {"1", "0.09%", "3,000"},
               {"1", "0.09%", "50"}});
  expect_rows(shown["temporary"],
              {{"800", "100.00%", "1,000", "5 ms", "scratch scratch.c:7 < main main.c:9"}});
  expect_rows(shown["lifetime"],
              {{"5.0 s", "100.00%", "1,000", "5 ms", "scratch scratch.c:7 < main main.c:9"}});
  expect_rows(shown["peak"], {{"6,400", "64.00%", "keeper keeper.c:2 < main main.c:9"},
                              {"3,000", "30.00%", "buffer buffer.c:2 < worker worker.c:5"},
                              {"550", "5.50%", "scratch scratch.c:7 < main main.c:9"},
                              {"50", "0.50%"}});
  EXPECT_EQ(shown["temporary"]["titles"],
            (Names{"temporary", "share", "allocations", "mean lifetime",
                   "stack: function and line, callers"}));
  EXPECT_EQ(shown["allocated"]["text"], "41,450 bytes in 1 report");
  EXPECT_EQ(box(shown["allocated"]["boxes"], "scratch")["title"],
            "scratch\n32,000 bytes (77.20%), 1,000 allocations");
  expect_width(shown["allocated"]["boxes"], "scratch", 32000, 41450);
  EXPECT_EQ(box(shown["temporary"]["boxes"], "scratch")["title"],
            "scratch\n800 temporary allocations (100.00%), of 1,000 allocations");
  EXPECT_EQ(shown["peak"]["report"], "-1");
  // Only what is live is compared.
  for (const char* measure : {"live", "blocks", "peak"}) EXPECT_FALSE(shown[measure]["disabled"]);
  for (const char* measure : {"allocated", "lifetime"}) EXPECT_TRUE(shown[measure]["disabled"]);
}

TEST_F(Browser, BlockSizesAreBarsOfPowersOfTwo) {
  const json& shown = facts_["views"]["shown"];
  const json& live = shown["live"]["sizes"];
  // 32 to 63 bytes up to 2,048 to 4,095.
  ASSERT_EQ(live.size(), 7u);
  for (size_t i = 0; i < live.size(); ++i) EXPECT_EQ(live[i]["number"], 6 + i);
  EXPECT_EQ(live[0]["title"], "32 to 63 bytes: 1 block, 50 bytes in 1 stack");
  EXPECT_EQ(live[1]["title"], "64 to 127 bytes: 100 blocks, 6,400 bytes in 1 stack");
  EXPECT_EQ(live[6]["title"], "2,048 to 4,095 bytes: 1 block, 3,000 bytes in 1 stack");
  EXPECT_EQ(live[2]["height"], 0);
  // On a logarithmic scale.
  EXPECT_NEAR(live[0]["height"].get<double>() / live[1]["height"].get<double>(),
              std::log(2) / std::log(200), 0.001);
  EXPECT_EQ(shown["allocated"]["sizes"][0]["title"],
            "32 to 63 bytes: 1,001 allocations, 32,050 bytes in 2 stacks");
  EXPECT_TRUE(shown["allocated"]["hasSizes"]);
  EXPECT_FALSE(shown["peak"]["hasSizes"]);
}

TEST_F(Browser, BlockSizesAreExactWhereTheyAreKnown) {
  const json& facts = facts_["exactSizes"];
  const auto has = [](const json& bars, const std::string& title) {
    return std::any_of(bars.begin(), bars.end(),
                       [&](const json& bar) { return bar["title"] == title; });
  };
  for (const char* bars : {"bars", "found"}) {
    EXPECT_TRUE(has(facts[bars], "8 to 15 bytes: 80 blocks, 800 bytes in 1 stack")) << facts;
    EXPECT_TRUE(has(facts[bars], "256 to 511 bytes: 20 blocks, 5,600 bytes in 1 stack"));
  }
  // The others have an average only; a search leaves them out.
  EXPECT_TRUE(has(facts["bars"], "2,048 to 4,095 bytes: 1 block, 3,000 bytes in 1 stack"));
  EXPECT_EQ(facts["found"].size(), 6u);
  EXPECT_EQ(facts["key"],
            "Sizes are exact, from the event log; stacks that it does not have count at their "
            "average size.");
  EXPECT_EQ(facts["foundKey"], "Sizes are exact, from the event log.");
  const json& shown = facts_["views"]["shown"];
  for (const char* measure : {"live", "allocated"}) {
    EXPECT_TRUE(shown[measure]["sizesKey"].get<std::string>().starts_with(
        "The blocks of a stack count at their average size: reports do not hold the sizes."));
  }
}

TEST_F(Browser, ThePageIsInvertedAndShowsOneThread) {
  const json& views = facts_["views"];
  // 30 functions and main are deep: the graph hangs, also inverted.
  EXPECT_EQ(views["icicle"], true);
  const double row = box(views["inverted"], "keeper")["y"].get<double>();
  EXPECT_GT(row, 0);
  for (const char* name : {"keeper", "buffer", "deep0"}) {
    EXPECT_EQ(box(views["inverted"], name)["y"], row) << name;
  }
  EXPECT_EQ(box(views["inverted"], "worker")["y"], 2 * row);
  EXPECT_EQ(box(views["shown"]["live"]["boxes"], "worker")["y"], row);
  expect_width(views["inverted"], "keeper", 6400, 9450);
  EXPECT_EQ(views["threads"], (Names{"all", "main", "worker"}));
  expect_rows(views["worker"],
              {{"3,000", "100.00%", "1", "buffer buffer.c:2 < worker worker.c:5"}});
  EXPECT_EQ(views["worker"]["text"], "3,000 bytes");
}

TEST_F(Browser, ThePageHasTheCommandTimesAndSourceLines) {
  const json& views = facts_["views"];
  EXPECT_TRUE(views["about"].get<std::string>().starts_with("svc --name 'a b', pid 78,"))
      << views["about"];
  Names times;
  for (const json& text : views["axis"]) {
    if (text.get<std::string>().ends_with(" s")) times.push_back(text);
  }
  Names round;  // as many as there is room for
  for (int i = 40; i <= 90; i += 5) round.push_back(fmt::format("0.{:02} s", i));
  EXPECT_EQ(times, round);
  EXPECT_EQ(views["source"],
            (Names{"    1  one\n    2  \ttwo(\"\\n\");  // \ufffd\n    3  three\n"}));
  EXPECT_EQ(views["here"], (Names{"    2  \ttwo(\"\\n\");  // \ufffd\n"}));
  EXPECT_EQ(views["narrow"], 500);
}

// What memlog run wrote of a process that ran on: the last report is 18 s behind its last sample.
TEST_F(Browser, CurvesThatEndSayWhy) {
  EXPECT_EQ(
      facts_["cut"]["end"],
      "The curves end at 82.0 of 100.0 s: memlog run writes the timeline of a running process "
      "when its time has doubled, next at 164.0 s, and when the process ends.");
  EXPECT_EQ(facts_["cut"]["problems"], json::array());
  EXPECT_EQ(facts_["views"]["end"], "");
}

TEST_F(Browser, PagesFitAPhone) {
  for (const auto& [name, page] : facts_["narrow"].items()) {
    EXPECT_EQ(page["problems"], json::array()) << name;
    EXPECT_EQ(page["sideways"], 0) << name;
    EXPECT_EQ(page["narrower"], 0) << name;
    EXPECT_EQ(page["cut"], 0) << name;
  }
}

TEST_F(Browser, HostileNamesAreNames) {
  for (const char* part : {"hostileSvg", "hostilePage"}) {
    const json& facts = facts_[part];
    EXPECT_FALSE(facts["harmed"]) << part;
    ASSERT_EQ(facts["boxes"].size(), 3u) << part;
    std::string name = kHostile;
    // No XML may have U+FFFF.
    if (part == std::string("hostileSvg")) name.replace(name.size() - 3, 3, "\ufffd");
    EXPECT_EQ(facts["boxes"][2]["title"], name + "\n64 bytes (100.00%), 1 block") << part;
  }
}

TEST_F(Browser, SpeedscopeShowsFunctionsAndTotals) {
  std::string text = facts_["speedscope"]["text"];
  EXPECT_EQ(facts_["speedscope"]["problems"], json::array());
  EXPECT_HAS(text, "bytes of /usr/bin/svc");
  std::erase_if(text, [](char c) { return c == '\n' || c == '\t'; });
  // Total, own, function; KB are of 1024 bytes.
  for (const char* row : {"62.01 KB (100%)0 B (<0.01%)main", "46.88 KB (76%)46.88 KB (76%)start",
                          "15.14 KB (24%)0 B (<0.01%)serve", "8.79 KB (14%)8.79 KB (14%)leaky",
                          "6.35 KB (10%)6.35 KB (10%)cache"}) {
    EXPECT_HAS(text, row) << row << " in\n";
  }
}

}  // namespace
}  // namespace mtrace::test
