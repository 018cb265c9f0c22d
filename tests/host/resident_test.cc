// Memory that is resident and not malloc's: a note names it.
#include <cstring>

#include "host_test.h"

namespace mtrace::test {
namespace {

class ResidentTest : public HostTest {
 protected:
  static constexpr int64_t kDecoded = 2 * 348000;  // blocks of the program decodes, ...
  static constexpr int64_t kChunk = 112;           // ... and what each takes
  static constexpr int64_t kPage = 4096;

  // MiB by name, of the note that memlog makes of a report.
  std::map<std::string, int> named(const Memlog& log) {
    const std::string begin = "note: resident, not malloc's: ";
    std::map<std::string, int> kinds;
    const std::string text = memlog({"show", "--number", "1", log.path}).out;
    const size_t at = text.find(begin);
    if (at == std::string::npos) return kinds;
    EXPECT_EQ(at, text.rfind(begin)) << text;
    const size_t names = at + begin.size();
    const std::string rest = text.substr(names, text.find(" (of ", names) - names);
    for (const Match& kind : all_matches(rest + ',', " ?(.+?) ([0-9]+) MiB,")) {
      kinds[kind[1]] = std::stoi(kind[2]);
    }
    return kinds;
  }
};

TEST_F(ResidentTest, NamesEachKind) {
  const std::string file = temp() + "/file";
  EXPECT_EQ(named(reports_of(traced({program("resident"), file}), 1)[0]),
            (std::map<std::string, int>{
                {"mapped without a name", 24}, {file, 24}, {"code made at run time", 20}}));
}

TEST_F(ResidentTest, NamesWhatSbrkGave) {
  const std::vector<Memlog> logs =
      reports_of(traced({program("resident"), "sbrk"}, {{"MTRACE_MMAP", "1"}}), 1);
  EXPECT_EQ(named(logs[0]), (std::map<std::string, int>{{"taken by sbrk", 20}}));
  const std::string region = "region: resident=20971520 size=20971520 taken by sbrk";
  EXPECT_HAS(read_file(logs[0].path), region) << region;
}

// With malloc's growth in between. What was given back is not among it.
TEST_F(ResidentTest, NamesWhatManyCallsOfSbrkGave) {
  for (const uint64_t times : {300, 1500}) {
    const std::vector<Memlog> logs = reports_of(
        traced({program("resident"), "sbrk", std::to_string(times)}, {{"MTRACE_MMAP", "1"}}), 1);
    uint64_t taken = 0;
    uint64_t unplaced = 0;
    for (const auto& [key, value] : logs[0].meta) {
      if (key == "region" && value.ends_with(" taken by sbrk")) {
        taken = std::stoul(value.substr(strlen("resident=")));
      } else if (key == "note" && value.ends_with(" bytes taken by sbrk count as malloc's")) {
        unplaced = std::stoul(value.substr(strlen("up to ")));
      }
    }
    EXPECT_EQ(taken + unplaced, times << 14);
    EXPECT_EQ(unplaced != 0, times > 1024);
    EXPECT_GE(taken, std::min<uint64_t>(times, 1024) << 14);
  }
}

// Of threads that run and of one that has ended. Memory that the program lent to a thread is not
// among them: it may be something else again when the thread has ended.
TEST_F(ResidentTest, StacksOfThreads) {
  const Result result =
      expect_exit(run(traced({program("thread_stacks")}, {{"MTRACE_MMAP", "1"}})));
  unsigned long stacks = 0;
  unsigned long lent = 0;
  ASSERT_EQ(sscanf(result.out.c_str(), "stacks %lu lent %lu", &stacks, &lent), 2) << result.out;
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_FALSE(logs.empty());
  std::map<std::string, unsigned long> regions;
  for (const std::string& line : logs[0].all("region")) {
    const Match region = first_match(line, "^resident=([0-9]+) size=[0-9]+ (.*)$");
    ASSERT_FALSE(region.empty()) << line;
    regions[region[2]] = std::stoul(region[1]);
  }
  EXPECT_EQ(regions["anonymous rw-p stack"], stacks);
  EXPECT_GE(regions["anonymous rw-p"], lent);
}

// What is named stands in the summary of a run and in every view, once, instead of a guess.
TEST_F(ResidentTest, SummaryNamesIt) {
  const std::string note = "note: resident, not malloc's: ";
  const Result ran =
      expect_exit(run(plain({memlog_tool(), "run", "--no-compress", "--output=" + out() + "/", "--",
                             program("resident"), temp() + "/file"})));
  EXPECT_HAS(ran.err, note);
  EXPECT_LACKS(ran.err, "The rest may be");
  const std::string unnamed = "; the stacks that mapped it: MTRACE_MMAP=1 memlog run " +
                              program("resident") + ' ' + temp() + "/file\n";
  EXPECT_HAS(ran.err, unnamed);
  const auto logs = all_logs();
  ASSERT_EQ(logs.size(), 1u);
  const std::string path = logs.begin()->second.at(0).path;
  for (Words words : std::vector<Words>{{"show"}, {"show", "--sum"}, {"tree"}}) {
    words.push_back(path);
    const std::string text = memlog(words).out;
    EXPECT_HAS(text, note);
    EXPECT_EQ(text.find(note), text.rfind(note)) << text;
    EXPECT_HAS(text, unnamed);
    EXPECT_LACKS(text, "The rest may be");
  }
}

// Of the blocks that threads have freed, the pages that others keep are told, and by whom: each
// block that stays is on a page of its own, or on two. With whole stacks, each block of
// the tree would have one of its own.
TEST_F(ResidentTest, HeapsOfThreads) {
  const Result ran =
      expect_exit(run(plain({memlog_tool(), "run", "--no-compress", "--output=" + out() + "/", "--",
                             program("decodes"), "100"},
                            {{"MTRACE_DEPTH", "10"}})));
  const auto logs = all_logs();
  ASSERT_EQ(logs.size(), 1u);
  const Memlog& log = logs.begin()->second.at(0);
  EXPECT_EQ(named(log).count("mapped without a name"), 0u);
  std::map<std::string, int64_t> heap = log.numbers("heap");
  constexpr int64_t kKept = kDecoded / 100;
  EXPECT_GE(heap["live"], kKept * 96);
  EXPECT_LT(heap["live"], kKept * 96 + 100000);
  EXPECT_GE(heap["resident"], kDecoded * kChunk);
  EXPECT_LT(heap["resident"], kDecoded * kChunk + 1000000);
  EXPECT_GE(heap["free"], (kDecoded - kKept) * kChunk);
  EXPECT_LT(heap["free"], (kDecoded - kKept) * kChunk + 1000000);
  EXPECT_EQ(heap["arenas"], 2);
  EXPECT_GE(heap["empty"], heap["arenas-empty"]);
  EXPECT_LT(heap["empty"], heap["arenas-empty"] + 200000);
  const int64_t kept = heap["resident"] - heap["empty"];
  EXPECT_GE(kept, kKept * kPage);
  EXPECT_LT(kept, kKept * kPage * 104 / 100 + 400000);
  int64_t held = 0;
  for (const auto& [stack, bytes] : log.numbers("heap-stacks")) held += bytes;
  EXPECT_EQ(held, kept);

  const std::string note = "note: heaps of malloc: ";
  const Result shown = memlog({"show", log.path});
  const Result summed = memlog({"show", "--sum", log.path});
  for (const std::string& text : {ran.err, shown.out, summed.out}) {
    const size_t at = text.find(note);
    ASSERT_NE(at, std::string::npos) << text;
    EXPECT_EQ(at, text.rfind(note)) << text;
    const std::string line = text.substr(at, text.find('\n', at) - at);
    EXPECT_HAS(line, "; malloc_trim(3) frees at most ");
    EXPECT_HAS(line, ", fewer arenas (MALLOC_ARENA_MAX, now 2 of threads) ");
    EXPECT_HAS(line, "; blocks of decode keep ");
    EXPECT_TRUE(line.ends_with("; for details while it runs: memlog map PID")) << line;
    EXPECT_LACKS(text, "The rest may be");
    EXPECT_LACKS(text, "mapped without a name");
    EXPECT_LACKS(text, ".ledger ");
  }
}

// Of a running process, top says it, and report of the report that it asks for.
TEST_F(ResidentTest, HeapsOfRunningProcess) {
  Process process(traced({program("decodes"), "100", "wait"},
                         {{"MTRACE_DEPTH", "10"}, {"MTRACE_LEDGER", out() + "/"}}),
                  "ready");
  const std::string pid = process.id();
  const Result top = memlog({"top", "--once", "--limit", "1", pid});
  const Result report = run(plain({memlog_tool(), "report", pid}));
  ASSERT_TRUE(top.exited(0) && report.exited(0)) << top.err << report.err;
  expect_exit(process.wait());
  uint64_t free[2] = {};
  uint64_t held[2] = {};
  const std::string texts[] = {top.out, report.err};
  for (size_t i = 0; i < 2; ++i) {
    const Match found =
        first_match(texts[i],
                    "heaps of malloc: [^\n]* live, ([^\n]*) free; malloc_trim[^\n]*; blocks of "
                    "decode keep ([^\n]*); for details while it runs: memlog map " +
                        pid + "\n");
    ASSERT_FALSE(found.empty()) << texts[i];
    // In bytes, or in MiB with a digit behind the point.
    const double unit = found[1].ends_with(" MiB") ? 1 << 20 : 1;
    free[i] = static_cast<uint64_t>(std::stod(found[1]) * unit);
    held[i] = static_cast<uint64_t>(std::stod(found[2]) * unit);
  }
  // The library counts each page for one of its stacks, memlog in parts for all of them.
  EXPECT_NEAR(static_cast<double>(free[0]), static_cast<double>(free[1]), 1000000);
  EXPECT_NEAR(static_cast<double>(held[0]), static_cast<double>(held[1]), 1000000);
}

// Heaps without a live block are malloc's, too.
TEST_F(ResidentTest, EmptyHeapsOfThreads) {
  const std::vector<Memlog> logs = reports_of(
      traced({program("decodes"), "0"}, {{"MTRACE_DEPTH", "10"}, {"MTRACE_LEDGER", out() + "/"}}),
      1);
  for (const auto& [name, size] : named(logs[0])) EXPECT_EQ(name, "mtrace's tables");
  std::map<std::string, int64_t> heap = logs[0].numbers("heap");
  EXPECT_GE(heap["arenas-empty"], kDecoded * kChunk - 4 * kPage);
  EXPECT_LE(heap["arenas-empty"], heap["resident"]);
}

// Where not all live blocks are known, nobody knows what is free.
TEST_F(ResidentTest, NoHeapsOfSamples) {
  const std::vector<Memlog> logs = reports_of(
      traced({program("decodes"), "100"}, {{"MTRACE_DEPTH", "10"}, {"MTRACE_SAMPLE", "64K"}}), 1);
  EXPECT_TRUE(logs[0].numbers("heap").empty());
}

// What is not much is not looked for, nor is malloc's own.
TEST_F(ResidentTest, NothingToSay) {
  for (const Words& argv :
       {Words{program("three_leaks")}, {"/usr/bin/sqlite3", ":memory:", "select 1"}}) {
    const Result result = run(traced(argv));
    for (const Memlog& log : logs_of(result.pid)) {
      EXPECT_EQ(named(log), (std::map<std::string, int>())) << argv[0];
      EXPECT_TRUE(log.numbers("heap").empty()) << argv[0];
    }
  }
}

TEST_F(ResidentTest, HeapOfV8) {
  const std::string script = temp() + "/heap.js";
  // 40 MiB of numbers in V8's heap, and 24 MiB that malloc gave.
  write_file(script,
             "const kept = [];\n"
             "for (let i = 0; i < 40; ++i) kept.push(new Array(131072).fill(1.5));\n"
             "for (let i = 0; i < 24; ++i) kept.push(Buffer.alloc(1 << 20, 1));\n"
             "process.kill(process.pid, 'SIGUSR2');\n"
             "setTimeout(() => console.log(kept.length), 1);\n");
  const Result result = run(traced({"/usr/bin/node", script}, {{"MTRACE_SIGNAL", "USR2"}}));
  EXPECT_EQ(result.out, "64\n") << result.how() << result.err;
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_GE(logs.size(), 1u);
  const std::map<std::string, int> kinds = named(logs[0]);
  ASSERT_EQ(kinds.count("V8 heap"), 1u) << logs[0].path;
  EXPECT_GE(kinds.at("V8 heap"), 40);
  EXPECT_LT(kinds.at("V8 heap"), 60);
  // malloc's 24 MiB are none of them.
  EXPECT_EQ(kinds.count("mapped without a name"), 0u);
}

}  // namespace
}  // namespace mtrace::test
