// Answers about reports that were made by hand: what is right follows from them and from the
// documentation, and not from what memlog says.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "tool_test.h"

namespace mtrace::test {
namespace {

// Numbers of stacks, largest first.
std::string sorted(std::vector<uint64_t> numbers) {
  std::erase(numbers, 0u);
  std::sort(numbers.rbegin(), numbers.rend());
  return fmt::format("{}\n", fmt::join(numbers, " "));
}

std::string heaptrack_print(const std::string& options) {
  return shell("heaptrack_print --disable-builtin-suppressions -a0 -p0 -T0 " + options);
}

// What heaptrack finds in `file` of each stack.
std::string in_heaptrack(const std::string& file, const std::string& cost) {
  heaptrack_print(fmt::format("--flamegraph-cost-type {0} -F {1}.{0} {1} >/dev/null", cost,
                              shell_quoted(file)));
  return shell("awk '$NF > 0 {{ print $NF }}' {}.{} | sort -nr | paste -sd ' '", file, cost);
}

struct Item {
  unsigned stack;
  int64_t bytes, blocks, live;  // the change of bytes and blocks
  std::string more = {};        // further fields
  std::string kind = {};
  std::string frames = {};  // lines; empty: a function of the stack's own
};

struct Facts {
  int64_t peak = 0;  // bytes, half a second before the report; 0: not told
  int64_t merged = 0;
  std::pair<int64_t, int64_t> inherited = {};  // bytes, blocks
  std::string module = {};                     // a further line
};

class MadeReports : public testing::Test {
 protected:
  // Writes the next report of the process, with number `seq`, and returns its path.
  std::string add(int seq, std::vector<Item> items, const Facts& facts = {}) {
    std::pair<int64_t, int64_t> change;
    std::vector<std::pair<int64_t, std::string>> entries;
    for (const Item& item : items) {
      if (item.kind.empty()) change.first += item.bytes, change.second += item.blocks;
      entries.emplace_back(item.kind.empty() ? -item.bytes : INT64_MAX, text_of(item));
    }
    std::stable_sort(entries.begin(), entries.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    live_.first += change.first + facts.inherited.first;
    live_.second += change.second + facts.inherited.second;
    std::string text =
        fmt::format("# memlog 2\n# program: /usr/bin/svc\n# pid: 7\n# seq: {}\n", seq);
    if (facts.merged != 0) text += fmt::format("# merged: {} to {}\n", facts.merged, seq);
    text += fmt::format(
        "# trigger: signal\n# started: 2026-11-20T20:00:00.000000Z\n"
        "# taken: 2026-11-20T20:00:0{}.000000Z\n",
        seq);
    if (facts.inherited.second != 0) {
      text += fmt::format("# inherited: {} bytes {} blocks\n", facts.inherited.first,
                          facts.inherited.second);
    }
    text += fmt::format("# delta: {:+} bytes {:+} blocks\n# live: {} bytes {} blocks\n",
                        change.first, change.second, live_.first, live_.second);
    if (facts.peak != 0) {
      text += fmt::format("# peak: {} bytes 2026-11-20T20:00:0{}.500000Z\n", facts.peak, seq - 1);
    }
    text += "# lost: frames=0 stacks=0 blocks=0 inflight=0\n";
    for (const auto& [order, entry] : entries) text += entry;
    text += fmt::format(
        "# module: /usr/bin/svc base=0x55d0c0a00000\n{}# uptime: {}.000 seconds\n# resolved: yes\n"
        "# end\n",
        facts.module, seq);
    write_file(directory_ / fmt::format("svc-7-{}.memlog", seq), text);
    return directory_ / fmt::format("svc-7-{}.memlog", seq);
  }
  static std::string frames_of(unsigned stack) {
    return fmt::format(
        "\tf{0}\ta.c:{0}\t(/usr/bin/svc+0x{0}00)\n\tmain\ta.c:9\t(/usr/bin/svc+0x9)\n", stack);
  }
  static std::string text_of(const Item& item) {
    return fmt::format("{}{:+}\tblocks={:+}\tlive={}{}\tstack={:016x}\n{}",
                       item.kind.empty() ? "" : "@" + item.kind + "\t", item.bytes, item.blocks,
                       item.live, item.more.empty() ? "" : "\t" + item.more, item.stack,
                       item.frames.empty() ? frames_of(item.stack) : item.frames);
  }

  // What memlog prints, and nothing on standard error.
  static std::string answer(std::vector<std::string> words, const std::vector<std::string>& files) {
    words.insert(words.end(), files.begin(), files.end());
    const Outcome result = memlog(words);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return result.out;
  }
  // The bytes of massif's snapshots.
  static std::vector<int64_t> massif(std::vector<std::string> options,
                                     const std::vector<std::string>& files) {
    options.insert(options.begin(), {"export", "-f", "massif"});
    std::vector<int64_t> all;
    const std::string key = "mem_heap_B=";
    for (const std::string& line : lines_of(answer(options, files))) {
      if (line.starts_with(key)) all.push_back(std::stoll(line.substr(key.size())));
    }
    return all;
  }
  // What heaptrack says of them under `title`.
  std::string heaptrack(const std::string& title, const std::vector<std::string>& files) const {
    const std::string file = directory_ / "heaptrack.data";
    answer({"export", "-f", "heaptrack", "-o", file}, files);
    const std::string out = heaptrack_print(file);
    for (const std::string& line : lines_of(out)) {
      if (line.starts_with(title + ": ")) return line.substr(title.size() + 2);
    }
    return out;
  }
  // heaptrack's numbers of each stack in the last file, largest first.
  std::string stacks_in_heaptrack(const std::string& cost) const {
    return in_heaptrack(directory_ / "heaptrack.data", cost);
  }

  TemporaryDirectory directory_;
  std::pair<int64_t, int64_t> live_;  // bytes, blocks
};

// What one stack did between two reports, with a peak of the process in between. Before, each held
// 1,000 bytes in 2 blocks.
struct Lived {
  const char* what;
  int64_t peak, live, blocks;  // bytes at the peak; bytes and blocks in the end
  int64_t allocs, frees;
};
constexpr Lived kLived[] = {
    {"up and down, allocated twice", 90000, 1864, 3, 2, 1},
    {"up and down to where it was", 3000, 1000, 2, 1, 1},
    {"up and down to nothing", 3000, 0, 0, 1, 3},
    {"up and up", 1500, 2000, 4, 2, 0},
    {"down and up", 500, 2000, 2, 1, 1},
    {"down and down", 500, 0, 0, 0, 2},
    {"nothing to nothing", 1000, 1000, 2, 0, 0},
    {"down after the peak alone", 1000, 400, 1, 0, 1},
    {"up after the peak alone", 1000, 1400, 3, 1, 0},
};

// How much was allocated by the peak is not told: what is made up leaves the sums right.
TEST_F(MadeReports, NoCallsAreAddedAroundAPeak) {
  std::vector<Item> first;
  std::vector<Item> second;
  std::vector<uint64_t> live;
  std::vector<uint64_t> shares;
  int64_t peak = 0;
  int64_t calls = 0;
  for (const Lived& one : kLived) {
    const auto stack = static_cast<unsigned>(first.size() + 1);
    first.push_back({stack, 1000, 2, 1000, "allocs=2\tallocated=1000\tpeak=1000"});
    const int64_t change = one.live - 1000;
    const int64_t freed = one.frees == 0 ? 0 : one.allocs == 0 ? -change : 5000;
    std::string more;
    if (one.allocs != 0) {
      more += fmt::format("allocs={}\tallocated={}\t", one.allocs, change + freed);
    }
    if (one.frees != 0) more += fmt::format("frees={}\tfreed={}\t", one.frees, freed);
    second.push_back(
        {stack, change, one.blocks - 2, one.live, more + fmt::format("peak={}", one.peak)});
    live.push_back(static_cast<uint64_t>(one.live));
    shares.push_back(static_cast<uint64_t>(one.peak));
    peak += one.peak;
    calls += 2 + one.allocs;
  }
  const std::vector<std::string> files = {
      add(1, first, {.peak = 1000 * int64_t{std::size(kLived)}}), add(2, second, {.peak = peak})};
  EXPECT_TRUE(
      heaptrack("calls to allocation functions", files).starts_with(fmt::format("{} ", calls)));
  EXPECT_EQ(stacks_in_heaptrack("leaked"), sorted(live));
  EXPECT_EQ(stacks_in_heaptrack("peak"), sorted(shares));
}

// Tail calls: a stack has an entry for each function that it calls.
TEST_F(MadeReports, EachCallOfAStackCounts) {
  const std::vector<std::string> files = {
      add(1, {{1, 100, 1, 100, "allocs=1\tallocated=100\tcall=malloc"},
              {1, 50, 1, 50, "allocs=1\tallocated=50\tcall=calloc"}}),
      add(2, {{1, 20, 1, 70, "allocs=1\tallocated=20\tcall=calloc"}}),
      add(3, {{1, -100, -1, 0, "frees=1\tfreed=100\tcall=malloc"}})};
  EXPECT_EQ(massif({}, files), (std::vector<int64_t>{0, 150, 170, 70}));
  EXPECT_TRUE(heaptrack("calls to allocation functions", files).starts_with("3 "));
  EXPECT_EQ(stacks_in_heaptrack("leaked"), "70\n");
}

// A profile has one line for each stack, and no negative ones.
TEST_F(MadeReports, CallsOfAStackAreOneStackOfAProfile) {
  const std::string file = add(1, {{1, 100, 2, 100, "call=malloc"},
                                   {2, 30, 1, 30, "call=malloc"},
                                   {2, -40, -1, 0, "call=calloc"},
                                   {1, -80, -1, 20, "call=calloc"}});
  const Outcome folded = memlog({"export", "-f", "folded", file});
  EXPECT_EQ(folded.out, "main;f1 20\n");
  EXPECT_EQ(folded.err, "memlog: export: left out 1 stack whose number is below 0\n");
  const std::string csv = answer({"export", "-f", "csv"}, {file});
  EXPECT_EQ(lines_of(csv).size(), 5u) << csv;
}

// Read a piece at a time, it has the same lines as when it is read whole.
TEST_F(MadeReports, CallsOfAStackAreOneStackOfALargeReport) {
  std::vector<Item> items;
  for (unsigned stack = 1; stack <= 60'000; ++stack) {
    const unsigned grew = stack % 100 + 1;
    items.push_back({stack, grew, 1, grew, "call=malloc"});
    if (stack % 3 == 0) items.push_back({stack, -50, -1, 0, "call=calloc"});
    if (stack % 9 == 0) items.push_back({stack, -50, -1, 0, "call=realloc"});
  }
  const std::string file = add(1, items);
  ASSERT_GT(std::filesystem::file_size(file), 8u << 20);
  const Outcome pieces = memlog({"export", "-f", "folded", file});
  const Outcome whole = memlog({"export", "-f", "folded", "--by", "bytes", "--depth", "2", file});
  EXPECT_TRUE(pieces.out == whole.out);
  EXPECT_EQ(pieces.err, whole.err);
  EXPECT_HAS(pieces.out, "\nmain;f51 2\n");
  EXPECT_LACKS(pieces.out, "\nmain;f54 ");
}

// Also of stacks that the order, net bytes, leaves out.
TEST_F(MadeReports, ATreeCountsAllStacks) {
  const std::string file = add(1, {{1, 100, 1, 100, "allocs=3\tallocated=300\tfrees=2\tfreed=200"},
                                   {2, 0, 0, 0, "allocs=5\tallocated=50\tfrees=5\tfreed=50"}});
  const std::string tree = answer({"tree", "--json"}, {file});
  const std::string key = "\"allocated_blocks\":";
  const size_t at = tree.find(key, tree.find("\"trees\""));
  ASSERT_NE(at, std::string::npos) << tree;
  EXPECT_EQ(std::stoi(tree.substr(at + key.size())), 8) << tree;
}

TEST_F(MadeReports, ATimelineIsOfTheWholeProcess) {
  const std::vector<std::string> files = {add(1, {{1, 100, 1, 100}, {2, 9000, 1, 9000}}),
                                          add(2, {{1, 100, 1, 200}})};
  write_file(directory_ / "svc-7.timeline",
             "# timeline 1\n# program: /usr/bin/svc\n# pid: 7\n"
             "# started: 2026-11-20T20:00:00.000000Z\n# interval: 20 ms\n"
             "# columns: milliseconds live blocks resident allocations\n"
             "500\t9050\t2\t4096\t3\n1500\t9150\t3\t4096\t1\n# end\n");
  EXPECT_EQ(massif({}, files), (std::vector<int64_t>{0, 9050, 9100, 9150, 9200}));
  for (const char* filter : {"--include=^f1$", "--exclude=^f2$"}) {
    EXPECT_EQ(massif({filter}, files), (std::vector<int64_t>{0, 100, 200})) << filter;
  }
}

TEST_F(MadeReports, OnlyStacksOfTheHeapChooseStacks) {
  const std::string file =
      add(1, {{1, 10, 1, 10}, {2, 5000, 1, 5000}, {1, 8192, 1, 8192, "", "mmap"}});
  EXPECT_EQ(massif({"--min-bytes", "1K"}, {file}), (std::vector<int64_t>{0, 5000}));
}

TEST_F(MadeReports, APageIsOfTheChosenReports) {
  const std::string first = add(1, {{1, 100, 1, 100, "peak=100"}}, {.peak = 100});
  const std::string alone = answer({"export", "-f", "html"}, {first});
  const std::string second =
      add(2, {{2, 900, 1, 900, "peak=900"}, {1, -100, -1, 0}}, {.peak = 900});
  EXPECT_EQ(answer({"export", "-f", "html", "--seq", "1"}, {first, second}), alone);
}

TEST_F(MadeReports, AMergedReportBeginsWithTheFirst) {
  const std::vector<std::string> files = {add(1, {{1, 100, 1, 100}}),
                                          add(2, {{1, 20, 1, 120, "peak=900"}}, {.peak = 900}),
                                          add(3, {{1, 50, 1, 170}})};
  EXPECT_EQ(massif({}, files), (std::vector<int64_t>{0, 100, 900, 120, 170}));
  answer({"merge", "--keep", "1"}, {directory_.path()});
  EXPECT_EQ(massif({}, {files[1]}), (std::vector<int64_t>{0, 900, 120}));
  // Growth is what the reports after the first changed.
  const Outcome check = memlog({"check", "--max-growth", "0", files[1], files[2]});
  EXPECT_EQ(check.status, 1);
  EXPECT_TRUE(check.out.starts_with("FAILED: grown: 50 bytes")) << check.out;
}

// Merging was cut short: report 1 is in report 2.
TEST_F(MadeReports, NothingCountsTwiceBesideAMerge) {
  const std::string first = add(1, {{1, 100, 1, 100, "allocs=1\tallocated=100"}});
  live_ = {};
  const std::string second = add(2, {{1, 150, 2, 150, "allocs=2\tallocated=150"}}, {.merged = 1});
  const std::string third = add(3, {{1, 7, 1, 157, "allocs=1\tallocated=7"}});
  EXPECT_TRUE(heaptrack("calls to allocation functions", {first, second, third}).starts_with("3 "));
}

TEST_F(MadeReports, MergingKeepsWhatAModuleAndASumAre) {
  const std::string script = "# module: /opt/a.py base=0x0 language=python\n";
  for (const int seq : {1, 2}) {
    add(seq,
        {{1, 10, 1, 10 * seq, "", "", "\tf\ta.py:1\t(/opt/a.py+0x1)\n"},
         {2, 1000, 1, 0, "saturated=1", "failed"}},
        {.module = script});
  }
  add(3, {{1, 1, 1, 21}});
  answer({"merge", "--keep", "1"}, {directory_.path()});
  const std::string merged = read_file(directory_ / "svc-7-2.memlog");
  EXPECT_HAS(merged, script);
  EXPECT_HAS(merged, "@failed\t+2000\tblocks=+2");
  EXPECT_HAS(merged, "\tsaturated=1\t");
}

TEST_F(MadeReports, WhatAChildInheritedIsToldAndNotCounted) {
  const std::vector<std::string> files = {
      add(1, {{1, 60, 1, 60}, {2, -40, -1, 60}}, {.inherited = {100, 2}}), add(2, {{1, 1, 1, 61}})};
  const std::string note =
      "not counted: 100 bytes that a process inherited at fork; the reports of the parents have "
      "them\n";
  const Outcome check = memlog({"check", "--max-live", "61", files[0], files[1]});
  EXPECT_EQ(check.status, 0) << check.err;
  EXPECT_EQ(check.out, "note: " + note + "ok: live: 61 bytes in 1 stack, 61 bytes allowed\n");
  const Outcome folded = memlog({"export", "-f", "folded", files[0], files[1]});
  EXPECT_EQ(folded.out, "main;f1 61\n");
  EXPECT_HAS(folded.err, "memlog: export: " + note);
}

// f1 calls f2 on two lines, and is called by it.
TEST_F(MadeReports, AGraphHasEachStackOnceOnAnEdge) {
  const std::string file =
      add(1, {{1, 100, 1, 100, "", "",
               "\tf2\ta.c:1\t(/usr/bin/svc+0x1)\n\tf1\ta.c:10\t(/usr/bin/svc+0x11)\n"
               "\tf2\ta.c:2\t(/usr/bin/svc+0x21)\n\tf1\ta.c:20\t(/usr/bin/svc+0x31)\n"
               "\tmain\ta.c:9\t(/usr/bin/svc+0x9)\n"}});
  size_t edges = 0;
  for (const std::string& line :
       lines_of(answer({"export", "-f", "dot", "--frames", "all"}, {file}))) {
    if (line.find(" -> ") == std::string::npos) continue;
    ++edges;
    EXPECT_HAS(line, "label=\"100\"");
  }
  EXPECT_EQ(edges, 3u);
}

}  // namespace
}  // namespace mtrace::test
