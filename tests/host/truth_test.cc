// The memlogs of programs that know what each of their call sites holds say the same, to the byte:
// in C and C++, optimised or not, by gcc and clang, position-independent or not, with and without
// frame pointers, stripped, and with threads.
#include <cctype>

#include "host_test.h"

namespace mtrace::test {
namespace {

class TruthTest : public HostTest {
 protected:
  // Runs a truth program and compares each report with what the program told at that moment.
  void expect_truth(const std::string& path, const std::string& symbols, int phases,
                    const Settings& settings = {}) {
    const Result result = expect_exit(run(traced({path, "signals"}, settings)));
    EXPECT_EQ(result.err, "");
    const std::vector<Memlog> logs = logs_of(result.pid, static_cast<size_t>(phases + 1));
    expect_phases(result.out, logs, path, symbols);
    for (int i = 0; i < phases; ++i) {
      EXPECT_EQ(logs[static_cast<size_t>(i)].get("trigger"), "signal");
    }
    EXPECT_EQ(logs.back().get("trigger"), "exit");
    EXPECT_EQ((Sites()), site_sums({logs.back()}, path, symbols));
  }
};

struct Variant {
  std::string compiler;
  std::string level;
  std::string pie;
  std::string frame_pointer;
};

class TruthMatrixTest : public TruthTest, public ::testing::WithParamInterface<Variant> {
 protected:
  static std::string file(const std::string& name) {
    const Variant& v = GetParam();
    return program(name + "." + v.compiler + "." + v.level + "." + v.pie + "." + v.frame_pointer);
  }
};

TEST_P(TruthMatrixTest, C) { expect_truth(file("truth_c"), file("truth_c"), 4); }

TEST_P(TruthMatrixTest, Cxx) { expect_truth(file("truth_cxx"), file("truth_cxx"), 3); }

std::vector<Variant> all_variants() {
  std::vector<Variant> variants;
  for (const char* compiler : {"gcc", "clang"}) {
    for (const char* level : {"O0", "O2"}) {
      for (const char* pie : {"pie", "nopie"}) {
        for (const char* frame_pointer : {"fp", "nofp"}) {
          variants.push_back({compiler, level, pie, frame_pointer});
        }
      }
    }
  }
  return variants;
}

INSTANTIATE_TEST_SUITE_P(All, TruthMatrixTest, ::testing::ValuesIn(all_variants()),
                         [](const auto& info) {
                           const Variant& v = info.param;
                           return v.compiler + "_" + v.level + "_" + v.pie + "_" + v.frame_pointer;
                         });

TEST_F(TruthTest, Stripped) {
  for (const auto& [name, phases] : {std::pair{"truth_c", 4}, {"truth_cxx", 3}}) {
    const std::string whole = program(std::string(name) + ".gcc.O2.pie.nofp");
    const std::string stripped = temp() + '/' + name;
    expect_exit(run(plain({"/usr/bin/strip", "-o", stripped, whole})));
    expect_truth(stripped, whole, phases);
  }
}

TEST_F(TruthTest, Threads) { expect_truth(program("truth_threads"), program("truth_threads"), 3); }

// What glibc lacks before 2.35, and what before 2.34 is in libraries that not every program loads:
// a copy of the library looks for it by other names, which no libc has.
TEST_F(TruthTest, WithoutWhatOlderLibcsLack) {
  std::string bytes = read_file(library());
  for (const std::string name : {"_dl_find_object", "dlopen", "dlsym", "dlerror", "dladdr1",
                                 "pthread_getspecific", "__libc_single_threaded"}) {
    size_t at = bytes.find(name + '\0');
    // Not the end of another name; before the first one stands anything.
    while (at != std::string::npos && (std::isalnum(bytes[at - 1]) || bytes[at - 1] == '_')) {
      at = bytes.find(name + '\0', at + 1);
    }
    ASSERT_NE(at, std::string::npos) << name;
    bytes[at + name.size() - 1] = '?';
  }
  write_file(temp() + "/libmtrace.so", bytes);
  const std::map<std::string, std::string> env = {{"LD_PRELOAD", temp() + "/libmtrace.so"}};
  for (const std::string name : {"truth_c.gcc.O2.nopie.nofp", "truth_c.clang.O2.pie.nofp"}) {
    expect_truth(program(name), program(name), 4, env);
  }
  for (const std::string name : {"truth_cxx.gcc.O2.pie.nofp", "truth_threads"}) {
    expect_truth(program(name), program(name), 3, env);
  }
}

// Threads that resize and free each other's blocks while reports are asked for on all sides. The
// sum of all reports is what is left, whatever moment each was taken at.
TEST_F(TruthTest, ChurnUnderReports) {
  const std::string path = program("churn");
  const Result result = expect_exit(run(traced({path, "60000"})));
  EXPECT_HAS(result.out, "reports 40 failed 0\n");
  const std::vector<Memlog> logs = logs_of(result.pid);
  EXPECT_GE(logs.size(), 41u);
  const auto told = told_sites(result.out).at(1);
  const auto found = site_sums(logs, path, path);
  EXPECT_EQ(told, found) << "told:\n" << describe(told) << "found:\n" << describe(found);
  EXPECT_EQ(logs.back().get("lost"), "frames=0 stacks=0 blocks=0 inflight=0");
}

// The other walker must come to the same sums.
TEST_F(TruthTest, Libunwind) {
  expect_truth(program("truth_cxx.gcc.O2.pie.nofp"), program("truth_cxx.gcc.O2.pie.nofp"), 3,
               {{"MTRACE_UNWINDER", "libunwind"}});
}

// A block that is freed past the hooks counts until its address comes back, and no longer.
TEST_F(TruthTest, MissedFrees) {
  expect_truth(program("missed_frees"), program("missed_frees"), 3);
  const std::vector<Memlog> logs = logs_of("missed_frees");
  ASSERT_EQ(logs.size(), 4u);
  EXPECT_EQ(logs[0].get("lost"), "frames=0 stacks=0 blocks=0 inflight=0");
  EXPECT_EQ(logs[1].get("lost"), "frames=0 stacks=0 blocks=0 inflight=0 frees=10");
  for (const Entry& entry : logs[2].entries) {
    EXPECT_FALSE(entry.live == 0 && entry.counts.contains("slack")) << entry.line;
  }
  EXPECT_EQ(logs[2].number("unknown-frees"), 0);
}

// The same of large blocks whose address comes back to a small one: a report finds them out.
TEST_F(TruthTest, MissedFreesOfLargeBlocks) {
  expect_truth(program("replaced_large"), program("replaced_large"), 3);
  const std::vector<Memlog> logs = logs_of("replaced_large");
  ASSERT_EQ(logs.size(), 4u);
  EXPECT_EQ(logs[1].get("lost"), "frames=0 stacks=0 blocks=0 inflight=0 frees=20");
  EXPECT_EQ(logs[2].number("unknown-frees"), 0);
}

// As many frames as backtrace() finds, to the outermost; of more than 256, the innermost 256.
TEST_F(TruthTest, StacksAreWhole) {
  const Result result = expect_exit(run(traced({program("deep_stacks")})));
  std::vector<int64_t> told;
  for (const std::string& line : lines_of(result.out)) {
    told.push_back(static_cast<int64_t>(std::stoul(line.substr(line.find(' ')))));
  }
  ASSERT_EQ(told.size(), 9u) << result.out;
  std::vector<int64_t> found;
  const std::vector<Memlog> logs = logs_of(result.pid, 1);
  for (const Entry& entry : logs[0].entries) {
    if (entry.bytes != 1000) continue;
    const auto frames = static_cast<int64_t>(entry.frames.size());
    EXPECT_TRUE(!entry.cut || frames == 256) << entry.line;
    found.push_back(entry.cut ? 257 : frames);
  }
  for (int64_t& frames : told) frames = std::min<int64_t>(frames, 257);
  std::sort(told.begin(), told.end());
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, told);
  EXPECT_EQ(std::count(told.begin(), told.end(), 257), 1) << "one is deeper";
}

// What memlog makes of an event log and of a ledger has the stacks of a report, and what they share
// once.
TEST_F(TruthTest, StacksAreWholeInWhatMemlogWrites) {
  using Place = std::pair<std::string, uint64_t>;
  const auto stacks = [](const std::string& path) {
    std::map<std::string, std::vector<Place>> out;
    for (const Entry& entry : read_memlog(path).entries) {
      if (entry.bytes != 1000) continue;
      for (const Frame& frame : entry.frames) {
        out[entry.stack].emplace_back(frame.module, frame.offset);
      }
    }
    return out;
  };
  const auto has_tails = [](const std::string& path) {
    return read_file(path).find("\n# tail: ") != std::string::npos;
  };
  const Result result = expect_exit(run(traced(
      {program("deep_stacks")}, {{"MTRACE_EVENTS", "1"}, {"MTRACE_RESOLVER", memlog_tool()}})));
  const std::string report = report_path("deep_stacks", result.pid, 1);
  const auto expected = stacks(report);
  EXPECT_EQ(expected.size(), 9u);
  const std::string log = out() + "/deep_stacks-" + std::to_string(result.pid) + ".events";
  const Result made = expect_exit(memlog({"report", "--from", log}));
  const std::string from_log = out() + '/' + lines_of(made.out).at(0);
  EXPECT_TRUE(stacks(from_log) == expected);
  EXPECT_TRUE(has_tails(from_log));
  fs::remove(from_log);

  const pid_t pid =
      run(traced({program("deep_stacks"), "killed"}, {{"MTRACE_LEDGER", temp()}})).pid;
  const std::string ledger = temp() + "/deep_stacks-" + std::to_string(pid) + ".ledger";
  const std::string recovered = temp() + "/recovered.memlog";
  expect_exit(memlog({"recover", "-o", recovered, ledger}));
  EXPECT_TRUE(stacks(recovered) == expected);
  EXPECT_TRUE(has_tails(recovered));
}

// What a phase leaves behind is its report, whatever the phase did meanwhile.
TEST_F(TruthTest, PhaseThatLeavesNothing) {
  const std::string path = program("truth_c.gcc.O0.pie.fp");
  const std::vector<Memlog> logs = reports_of(traced({path, "signals"}), 5);
  for (const Entry& entry : logs[2].entries) {
    EXPECT_EQ(entry.bytes, 0);
    EXPECT_EQ(entry.blocks, 0);
  }
  EXPECT_EQ(logs[2].amount("delta"), Amount{});
  EXPECT_EQ(logs[2].get("delta"), "+0 bytes +0 blocks");
}

}  // namespace
}  // namespace mtrace::test
