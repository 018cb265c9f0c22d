// Three leaks in template-heavy code, optimised and not: each view begins with the three functions
// that leak, and folds and groups without losing a byte.
#include "host_test.h"
#include "shell.h"

namespace mtrace::test {
namespace {

// In the order of what they leak.
const Words kLeaks = {"Cache<...>::remember", "Sessions::open", "Graph<...>::link"};
constexpr size_t kMostLines = 60;
constexpr int kRequests = 32;
constexpr char kBlocks[] = "352";  // that these leak: nothing else of them lives on

class OwnCodeTest : public HostTest, public testing::WithParamInterface<const char*> {
 protected:
  // The program, built with this test's optimisation, once for all tests.
  static std::string built(const std::string& name = "three_leaks") {
    static const TemporaryDirectory all;
    const std::string path = all / GetParam() + '/' + name;
    if (fs::exists(path)) return path;
    fs::create_directories(all / GetParam());
    shell(
        "g++ -g {0} -std=c++20 -fno-builtin -D_GNU_SOURCE -I{1}/include {1}/tests/programs/{2}.cc "
        "-o {3}",
        Script{GetParam()}, source_dir(), name, path);
    return path;
  }
  // Its reports, in order.
  Words reports(const std::string& depth = "10") {
    const Result result =
        expect_exit(run(traced({built(), "16", "50"}, {{"MTRACE_DEPTH", depth}})));
    Words files;
    for (int seq = 1; seq <= 17; ++seq) {
      files.push_back(report_path("three_leaks", result.pid, seq));
    }
    return files;
  }
  std::string view(Words words, const Words& files) {
    words.insert(words.end(), files.begin(), files.end());
    return expect_exit(memlog(words)).out;
  }
};

// What stands in a page as text.
std::string unescaped(const std::string& text) {
  return replaced(replaced(text, "&lt;", "<"), "&gt;", ">");
}

// The leaks in the order in which `text` names them first.
Words leaks_in(const std::string& text) {
  std::map<size_t, std::string> places;
  for (const std::string& leak : kLeaks) {
    const size_t at = text.find(leak);
    if (at != std::string::npos) places[at] = leak;
  }
  Words out;
  for (const auto& [at, leak] : places) out.push_back(leak);
  return out;
}

bool names_library(const std::string& text) { return has_match(text, "malloc|operator new|std::"); }

// `lines` are those that begin an item: a row, or the first line of a stack.
void expect_leaks_first(const Words& lines, const std::string& whole) {
  Words first;
  for (const std::string& line : lines) {
    EXPECT_FALSE(names_library(line) && first.size() < kLeaks.size()) << line;
    const Words leaks = leaks_in(line);
    if (first.size() < kLeaks.size()) {
      ASSERT_FALSE(leaks.empty()) << line << "\n" << whole;
      if (std::find(first.begin(), first.end(), leaks[0]) == first.end()) first.push_back(leaks[0]);
    }
  }
  EXPECT_EQ(first, kLeaks) << whole;
}

// What pprof lists: it drops what memlog folds, also what was inlined.
void expect_in_pprof(const std::string& profile, Command pprof, const std::string& home) {
  pprof.argv = {"/usr/bin/go", "tool", "pprof", "-top", "-nodecount=4", profile};
  pprof.env["HOME"] = home;  // for its cache
  const Result listed = expect_exit(run(pprof));
  Words functions;
  for (const std::string& line : lines_of(listed.out)) {
    // flat, its share, the sum of shares, cumulative, its share, function
    const Match row = first_match(line, "^ *\\S+ +\\S+% +\\S+% +\\S+ +\\S+%  (.*)$");
    if (!row.empty()) functions.push_back(row[1]);
  }
  // It leaves out template arguments.
  for (std::string& name : functions) {
    name = replaced(name, "shop::(Cache|Graph)::", "shop::\\1<...>::");
  }
  expect_leaks_first(functions, listed.out);
}

// The line after each one that begins with a number, below the header.
Words leaders(const std::string& text) {
  const Words lines = lines_of(text.substr(text.find("\n\n") + 2));
  Words out;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].starts_with('+') && !lines[i].starts_with("stack=")) continue;
    size_t next = i + 1;
    while (next < lines.size() && !lines[next].starts_with("    ")) ++next;
    if (next < lines.size()) out.push_back(lines[next]);
  }
  return out;
}

void expect_short(const std::string& text) { EXPECT_LE(lines_of(text).size(), kMostLines) << text; }

// Bytes of the first number of each entry.
int64_t sum_of_entries(const std::string& text) {
  int64_t sum = 0;
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with('+') || line.starts_with('-')) sum += std::stoll(line);
  }
  return sum;
}

// Blocks and bytes of the statistics of memlog expire.
std::pair<int64_t, int64_t> leaked_in(const std::string& text) {
  std::pair<int64_t, int64_t> sum;
  for (const Match& match : all_matches(text, "\n  may leak (\\d+) blocks?, (\\d+) bytes")) {
    sum.first += std::stoll(match[1]);
    sum.second += std::stoll(match[2]);
  }
  EXPECT_GT(sum.first, 0) << text;
  return sum;
}

TEST_P(OwnCodeTest, EachViewBeginsWithTheLeaks) {
  const Words files = reports();
  const std::string leaks = view({"leaks"}, files);
  expect_leaks_first(leaders(leaks), leaks);
  expect_short(leaks);
  const std::string shown = view({"show", "-n", "5"}, {files[8]});
  expect_leaks_first(leaders(shown), shown);
  expect_short(shown);
  const std::string compared = view({"diff", "-n", "5"}, {files[1], files[14]});
  expect_leaks_first(leaders(compared), compared);
  expect_short(compared);

  // Folding and grouping lose nothing.
  for (const char* by : {"function", "file", "line", "module"}) {
    const Words words = {"show", "-n", "0", "--no-header", "--group-by", by};
    EXPECT_EQ(
        sum_of_entries(view(words, {files[8]})),
        sum_of_entries(view({"show", "-n", "0", "--no-header", "--frames", "all"}, {files[8]})))
        << by;
  }

  // The innermost boxes of the picture, the widest first.
  const std::string picture = view({"export", "-f", "flamegraph"}, files);
  const std::string box =
      "<svg class=\"box [^>]*data-depth=\"(\\d+)\" data-grew=\"(\\d+)\"[^>]*>"
      "<title>([^\n]*)\n";
  struct Box {
    int depth;
    int64_t grew;
    std::string name;
  };
  std::vector<Box> boxes;
  for (const Match& match : all_matches(picture, box)) {
    boxes.push_back({std::stoi(match[1]), std::stoll(match[2]), unescaped(match[3])});
  }
  ASSERT_GE(boxes.size(), 8u);
  std::vector<Box> leaves;
  for (size_t i = 0; i < boxes.size(); ++i) {
    EXPECT_LACKS(boxes[i].name, "operator new");
    EXPECT_LACKS(boxes[i].name, "malloc");
    if (i + 1 == boxes.size() || boxes[i + 1].depth <= boxes[i].depth) leaves.push_back(boxes[i]);
  }
  std::stable_sort(leaves.begin(), leaves.end(),
                   [](const Box& a, const Box& b) { return a.grew > b.grew; });
  Words lines;
  for (const Box& leaf : leaves) lines.push_back(leaf.name);
  lines.resize(4);
  expect_leaks_first(lines, picture.substr(0, 2000));

  const std::string profile = temp() + "/profile.pb.gz";
  view({"export", "-f", "pprof", "-o", profile}, files);
  expect_in_pprof(profile, plain({}), temp());

  // The table of the page, as the browser has it.
  const std::string page = temp() + "/page.html";
  view({"export", "-f", "html", "-o", page}, files);
  ASSERT_TRUE(fs::exists("/usr/bin/chromium")) << "make deps-test installs it";
  const Result shot = expect_exit(run(plain({"/usr/bin/chromium", "--headless", "--no-sandbox",
                                             "--disable-gpu", "--dump-dom", "file://" + page})));
  Words rows;
  for (const std::string& cell : matches(shot.out, "class=\"stack\"[^>]*>([^<]*)<")) {
    const std::string text = unescaped(cell);
    rows.push_back(text.substr(0, text.find(" < ")));
  }
  ASSERT_GE(rows.size(), 4u);
  rows.resize(4);
  expect_leaks_first(rows, shot.out.substr(0, 2000));
}

// Without optimisation own code is more than three frames away from malloc.
TEST_P(OwnCodeTest, StacksCutBeforeOwnCodeSaySo) {
  const Words files = reports("3");
  const std::string cut = "    (cut at 3 frames, before own code)";
  const bool expected = GetParam() == std::string("-O0");
  for (const Words& words : std::vector<Words>{{"show", "-n", "0"},
                                               {"show", "-n", "0", "--group-by", "function"},
                                               {"diff", "-n", "0"}}) {
    const bool compare = words[0] == "diff";
    const std::string text = view(words, compare ? Words{files[1], files[14]} : Words{files[8]});
    const Words heads = leaders(text);
    for (const std::string& line : heads) EXPECT_FALSE(names_library(line)) << line;
    const auto count = std::count(heads.begin(), heads.end(), cut);
    if (expected) {
      EXPECT_NE(count, 0) << text;  // optimised, nearly all is inlined
    }
    if (words.size() == 5) {
      EXPECT_LE(count, 1) << text;
    }
  }
  if (!expected) return;
  const std::string picture = view({"export", "-f", "flamegraph"}, {files[8]});
  EXPECT_HAS(picture, "<title>(cut at 3 frames, before own code)");
  EXPECT_LACKS(picture, "<title>operator new");
}

TEST_P(OwnCodeTest, BlocksByTheirTypes) {
  const Result result = expect_exit(run(traced({built("block_types")}, {{"MTRACE_DEPTH", "64"}})));
  const std::string text = view({"show", "-n", "0", "--no-header", "--group-by", "type"},
                                {report_path("block_types", result.pid, 1)});
  std::multiset<std::string> shown;
  std::string numbers;
  for (const std::string& line : lines_of(text)) {
    const Match found = first_match(line, R"(^\+([0-9,]+) bytes +\+([0-9,]+) blocks?)");
    if (!found.empty()) {
      numbers = replaced(found[1] + ' ' + found[2], ",", "");
    } else if (line.starts_with("    ")) {
      shown.insert(numbers + ' ' + line.substr(4, line.find("  ", 4) - 4));
    }
  }
  std::multiset<std::string> told;
  for (const std::string& line : lines_of(result.out)) told.insert(line);
  EXPECT_EQ(shown, told) << text;
}

TEST_P(OwnCodeTest, LiveViewsBeginWithTheLeaks) {
  Process process(traced({built(), "8", "50", "wait"}, {{"MTRACE_LEDGER", temp()}}), "ready");
  const std::string pid = process.id();
  const std::string top = view({"top", "--once", "--limit", "4", pid}, {});
  Words rows;
  for (const std::string& line : lines_of(top)) {
    if (line.starts_with("   ") && line.find("blocks") == std::string::npos) rows.push_back(line);
  }
  expect_leaks_first(rows, top);

  // The same on a terminal of 80 columns and 24 lines.
  Command on_terminal =
      plain({"/usr/bin/script", "-qec",
             "stty rows 24 cols 80; exec " + memlog_tool() + " top --count 1 --delay 50ms " + pid,
             "/dev/null"});
  on_terminal.env["TERM"] = "xterm";
  const Result screen = expect_exit(run(on_terminal));
  // A busy machine may draw it twice.
  const std::string last = screen.out.substr(screen.out.rfind("\x1b[H"));
  const std::string shown = replaced(last, "\x1b\\[[0-9;?]*[A-Za-z]|\r", "");
  const size_t titles = shown.find("function (stacks)");
  ASSERT_NE(titles, std::string::npos) << shown;
  rows.clear();
  for (const std::string& line : lines_of(shown.substr(shown.find('\n', titles)))) {
    EXPECT_LE(line.size(), 80u) << line;
    if (!line.empty() && rows.size() < 4) rows.push_back(line);
  }
  expect_leaks_first(rows, shown);

  // Far longer than the requests take: what they free must not expire.
  const auto watching = [&](const char* by) {
    return plain({memlog_tool(), "expire", "--after", "2s", "--max-expired", kBlocks, "--group-by",
                  by, pid});
  };
  Process watch(watching("function"));
  Process by_stack(watching("stack"));
  ASSERT_TRUE(watch.read_line());
  ASSERT_TRUE(by_stack.read_line());
  process.write(std::string(kRequests, '\n'));
  const Result expired = expect_exit(watch.wait());
  // While it watches: a line that names own code. At the end: a paragraph, the largest leak first.
  const size_t end = expired.out.find("\n\nstopped at");
  ASSERT_NE(end, std::string::npos) << expired.out;
  for (const std::string& line : lines_of(expired.out.substr(0, end))) {
    EXPECT_FALSE(names_library(line)) << line;
  }
  Words heads;
  for (const std::string& line : lines_of(expired.out.substr(expired.out.find('\n', end + 2)))) {
    if (!line.empty() && line[0] != ' ') heads.push_back(line);
  }
  expect_leaks_first(heads, expired.out);
  expect_short(expired.out);
  const Result stacks = by_stack.wait();
  EXPECT_EQ(leaked_in(expired.out), leaked_in(stacks.out)) << expired.out << stacks.out;
  expect_exit(process.wait());
}

INSTANTIATE_TEST_SUITE_P(Builds, OwnCodeTest, testing::Values("-O0", "-O2"));

}  // namespace
}  // namespace mtrace::test
