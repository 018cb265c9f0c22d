// The benchmarks' own test: that the driver measures, says what it left out, and makes a document
// of it; and the instructions of a malloc+free pair, which callgrind counts and a file limits.
#include "host_test.h"

namespace mtrace::test {
namespace {

class BenchTest : public HostTest {
 protected:
  // A script of tools/bench.
  Result script(const std::string& name, Words arguments) {
    return run(plain(
        joined({"/usr/bin/python3", "-B", source_dir() + "/tools/bench/" + name}, arguments)));
  }
  Result bench(Words arguments) {
    arguments.insert(arguments.end(),
                     {"--quick", "--build", build_dir(), "--output", temp() + "/bench"});
    return script("bench.py", std::move(arguments));
  }
  // A script in Python that uses the modules there.
  Result driver(const std::string& text, Words arguments = {}) {
    write_file(temp() + "/driver.py",
               "import sys\nsys.path.insert(0, '" + source_dir() + "/tools/bench')\n" + text);
    return run(plain(joined({"/usr/bin/python3", "-B", temp() + "/driver.py"}, arguments)));
  }
  // bench.py of other programs and contenders.
  Result driven_bench(const std::string& text, Words arguments) {
    arguments.insert(arguments.end(), {"--quick", "--only", ".", "--build", build_dir(), "--output",
                                       temp() + "/bench"});
    return expect_exit(
        driver("import bench, programs, contenders\n" + text + "sys.exit(bench.main())\n",
               std::move(arguments)));
  }
  std::string results() { return read_file(temp() + "/bench/results.json"); }
};

TEST_F(BenchTest, MeasuresAProgramUnderEach) {
  const Result result = expect_exit(bench({"--rounds", "3", "--only", "^nested 12$"}));
  // One row, whose first figure is of the program without tracing.
  EXPECT_TRUE(has_match(result.out, "\nnested 12 +[0-9.]+ ")) << result.out << result.err;
  EXPECT_EQ(result.out, read_file(temp() + "/bench/table.txt"));
  EXPECT_LACKS(result.err, "survive");
  // Three rounds of each key.
  const std::string text = results();
  for (const char* key : {"wall", "cpu", "rss", "written", "ns"}) {
    const size_t found =
        all_matches(text, "\"" + std::string(key) + R"re(": \[\s*[^,\]]+,[^,\]]+,[^,\]]+\])re")
            .size();
    EXPECT_GE(found, 2u) << key << text;
  }
  // The library wrote its report at exit into the directory that is counted; base wrote nothing.
  const auto written = [&](const std::string& name, const std::string& figure) {
    return has_match(text, "\"" + name + "\": \\{[^}]*\"written\": \\[\\s*" + figure + ",\\s*" +
                               figure + ",\\s*" + figure + "\\s*\\]");
  };
  EXPECT_TRUE(written("base", "0(\\.0)?")) << text;
  EXPECT_TRUE(written("libmtrace", "[1-9]\\d*(\\.\\d*)?")) << text;
}

TEST_F(BenchTest, SaysWhatIsSkippedAndWhatFails) {
  // With a program that is not there, and a library that does not let programs live.
  const Result result = driven_bench(R"(
programs.all_programs = lambda quick: [
  programs.Program('gone', '', ['/no/such/program']),
  programs.Program('shell', '', ['/bin/sh', '-c', '[ -z "$BAD" ] || exit 3; echo $PRINTS']),
  programs.Program('off', '', ['/bin/false'])]
contenders.find = lambda build: ({'base': contenders.Contender('base'),
  'libmtrace': contenders.Contender('libmtrace', [], {'BAD': '1'}),
  'heaptrack': contenders.Contender('heaptrack', [], {'PRINTS': 'x'})}, ['LeakSanitizer is not installed'])
)",
                                     {});
  for (const std::string& text : {result.out, result.err}) {
    EXPECT_HAS(text, "gone: skipped, /no/such/program not installed");
    EXPECT_HAS(text, "off: skipped, does not run here: exit 1");
    EXPECT_HAS(text, "shell: libmtrace does not survive: exit 3");
    EXPECT_HAS(text, "shell: heaptrack does not survive: prints something else");
    EXPECT_HAS(text, "LeakSanitizer is not installed");
  }
}

// As tables of the binomial distribution have them.
TEST_F(BenchTest, IntervalOfAMedianIsTheBinomialOne) {
  EXPECT_EQ(driver("import figures\n"
                   "for count in 0, 5, 6, 9, 20, 50:\n"
                   "  print(figures.interval(list(range(count, 0, -1))))\n")
                .out,
            "None\nNone\n(1, 6)\n(2, 8)\n(6, 15)\n(18, 33)\n");
}

TEST_F(BenchTest, SamplingHasMoreRoundsAndAnInterval) {
  const Result result = driven_bench(R"(
programs.all_programs = lambda quick: [programs.Program('git', '', ['/bin/sh', '-c', 'echo'])]
contenders.find = lambda build: ({name: contenders.Contender(name)
  for name in ('base', 'libmtrace', 'libmtrace, sampled')}, [])
)",
                                     {"--sampled-rounds", "7"});
  EXPECT_TRUE(has_match(result.out, "\ngit +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ to [0-9.]+ +7\n"))
      << result.out;
  EXPECT_TRUE(
      has_match(result.out, "\ngit, sampled, upper end of the median's 95 % interval +1.03 "))
      << result.out;
}

// What 32 frames add is held against what 10 frames add in the same round.
TEST_F(BenchTest, DeepStacksAreHeldAgainstTenFrames) {
  const Result result = expect_exit(driver(R"(
import contenders, goals, programs
chosen = contenders.find('build')[0]
entries = []
for program in programs.all_programs(True):
  if program.kind != programs.REAL or program.depth != 32: continue
  for name in 'libmtrace', 'libmtrace, 10 frames':
    print(program.name, name, name in program.contenders,
          [line for line in chosen[name].variables('', program.depth) if 'DEPTH' in line])
  series = {'base': [1, 5, 1], 'libmtrace': [1.6, 5.5, 1.7], 'libmtrace, 10 frames': [1.2, 5.4, 1.5]}
  entries.append({'name': program.name, 'contenders':
                  {name: {'against': 'base', 'cpu': cpu} for name, cpu in series.items()}})
for what, goal, measured, limit, digits in goals.program_goals({'programs': entries}):
  if measured is not None: print(what, goal, round(measured, 6), limit, digits)
)"));
  std::string expected;
  for (const std::string name : {"python3", "clang++"}) {
    expected += name + ", depth 32 libmtrace True ['MTRACE_DEPTH=32']\n" + name +
                ", depth 32 libmtrace, 10 frames True ['MTRACE_DEPTH=10']\n";
  }
  for (const std::string name : {"clang++", "python3"}) {
    expected += name + ", added at depth 32, times depth 10 1.1 1.4 1.1 2\n";
  }
  EXPECT_EQ(result.out, expected);
}

TEST_F(BenchTest, MicroBenchmarksRun) {
  const Result result = expect_exit(bench({"--micro",
                                           "^(Walk/depth:10|InternKnown/stacks:100/.*|"
                                           "BlockTakeAndPut/live:1000|SnapshotAndWrite/stacks:1000)"
                                           "($|/)"}));
  for (const char* name : {"Walk/depth:10", "InternKnown/stacks:100/threads:1",
                           "BlockTakeAndPut/live:1000", "SnapshotAndWrite/stacks:1000"}) {
    EXPECT_HAS(result.out, "\n" + std::string(name) + " ") << name;
  }
}

TEST_F(BenchTest, DocumentsKeepWhatIsWrittenByHand) {
  expect_exit(bench({"--rounds", "2", "--only", "^(true|stacks 100)$"}));
  const Words pages = {"performance.md", "internals/measurements.md"};
  fs::create_directories(temp() + "/internals");
  for (const std::string& page : pages) {
    write_file(temp() + '/' + page, read_file(source_dir() + "/doc/" + page));
  }
  const Words arguments = {"--results",  temp() + "/bench/results.json",
                           "--document", temp() + '/' + pages[0],
                           "--details",  temp() + '/' + pages[1]};
  expect_exit(script("document.py", arguments));
  const Words once = {read_file(temp() + '/' + pages[0]), read_file(temp() + '/' + pages[1])};
  const auto outside = [](const std::string& text) {
    const size_t begin = text.find("<!-- measured: written");
    const size_t end = text.find("<!-- measured: end");
    EXPECT_LT(begin, end);
    EXPECT_NE(end, std::string::npos);
    return text.substr(0, begin) + text.substr(end);
  };
  for (size_t page = 0; page != pages.size(); ++page) {
    const std::string real = read_file(source_dir() + "/doc/" + pages[page]);
    EXPECT_EQ(outside(once[page]), outside(real));
    EXPECT_HAS(once[page], "| stacks 100 | ");
    const fs::path folder = fs::path(source_dir() + "/doc/" + pages[page]).parent_path();
    for (const std::string& picture : matches(real, R"re(\]\(([\w/.]+\.svg)\))re")) {
      EXPECT_TRUE(fs::exists(folder / picture)) << picture;
    }
  }
  EXPECT_HAS(once[1], "](../performance/pairs.svg)");
  EXPECT_TRUE(read_file(temp() + "/performance/pairs.svg").ends_with("</svg>\n"));
  expect_exit(script("document.py", arguments));
  for (size_t page = 0; page != pages.size(); ++page) {
    EXPECT_EQ(read_file(temp() + '/' + pages[page]), once[page]);
  }
}

TEST_F(BenchTest, InstructionsOfAPairAreWithinTheLimit) {
  const Result result = expect_exit(script("instructions.py", {build_dir()}));
  const std::string line =
      R"(^(?:churn|news) [a-z0-9 ]+(?: MTRACE_[A-Za-z0-9_=/]+)?: base ([\d.]+), libmtrace ([\d.]+), added [\d.]+, )"
      R"(limit \d+$)";
  const Words lines = lines_of(result.out);
  EXPECT_EQ(lines.size(), 12u) << result.out;
  for (const std::string& each : lines) {
    const Match match = first_match(each, line);
    ASSERT_FALSE(match.empty()) << each;
    // A count that is far too low counts something else.
    EXPECT_GT(std::stod(match[1]), 50) << each;
    EXPECT_GT(std::stod(match[2]), std::stod(match[1]) + 15) << each;
    printf("%s\n", each.c_str());
  }
}

}  // namespace
}  // namespace mtrace::test
