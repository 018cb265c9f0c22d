// Programs linked with musl under the library that programs of glibc have, too: every byte, and
// stacks through musl's code, which has no call-frame information.
#include "host_test.h"

namespace mtrace::test {
namespace {

class MuslTest : public HostTest {
 protected:
  const std::string ways_ = program("musl/ways");
  const std::string plugin_ = program("musl/plugin.so");

  // Functions of the frames, innermost first. Those of musl, of which few have names, are a "-".
  static std::string stack_of(const Entry& entry) {
    std::string stack;
    for (const Frame& frame : entry.frames) {
      const bool is_musl = frame.module.find("ld-musl") != std::string::npos;
      if (is_musl && stack.ends_with('-')) continue;
      stack += (stack.empty() ? "" : " ") + (is_musl ? "-" : frame.function);
    }
    return stack;
  }
  // The changes of each stack that begins with a function of this call.
  static Sites stacks(const Memlog& log) {
    Sites found;
    for (const Entry& entry : log.entries) {
      if (entry.kind.empty() && entry.blocks != 0)
        found[entry.call + " " + stack_of(entry)] += {entry.bytes, entry.blocks};
    }
    return found;
  }
};

TEST_F(MuslTest, Truth) {
  for (const std::string variant : {"O0.pie", "O0.nopie", "O2.pie", "O2.nopie"}) {
    SCOPED_TRACE(variant);
    const std::string path = program("musl/truth_c." + variant);
    const Result result = expect_exit(run(traced({path, "signals"}, {{"TRUTH_LENIENT", "1"}})));
    EXPECT_EQ(result.err, "");
    const std::vector<Memlog> logs = logs_of(result.pid, 5);
    expect_phases(result.out, logs, path, path);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(logs[i].get("trigger"), "signal");
      EXPECT_EQ(logs[i].get("lost"), "frames=0 stacks=0 blocks=0 inflight=0");
    }
    EXPECT_EQ(logs.back().get("trigger"), "exit");
  }
}

TEST_F(MuslTest, StacksThroughMusl) {
  const Result result = expect_exit(run(named({ways_, "all", plugin_})), 5);
  EXPECT_EQ(result.err, "");
  const std::vector<Memlog> logs = logs_of(result.pid, 3);
  EXPECT_EQ(logs[0].get("trigger"), "signal");
  const Sites expected = {
      {"malloc main -", {9000, 2}},
      {"calloc by_calloc main -", {300, 1}},
      {"posix_memalign by_aligned main -", {200, 1}},
      {"memalign by_aligned main -", {300, 1}},
      {"valloc by_aligned main -", {400, 1}},
      {"realloc by_realloc main -", {900, 1}},
      {"strdup - by_strdup main -", {12, 1}},
      {"malloc by_qsort_inner compare - by_qsort main -", {777, 1}},
      {"malloc plugin_constructor - by_plugin main -", {55, 1}},
      {"malloc plugin_work by_plugin main -", {66, 1}},
  };
  Sites found = stacks(logs[0]);
  const auto file = found.extract("malloc - by_fopen main -");
  EXPECT_TRUE(!file.empty() && file.mapped().blocks == 1) << describe(found);
  EXPECT_EQ(describe(found), describe(expected));
  for (const Memlog& log : logs)
    EXPECT_EQ(log.get("lost"), "frames=0 stacks=0 blocks=0 inflight=0");
}

TEST_F(MuslTest, ThreadsAndForkAndApi) {
  const Result result = expect_exit(run(named({ways_, "all", plugin_})), 5);
  const std::vector<Memlog> logs = logs_of(result.pid, 3);
  EXPECT_EQ(logs[1].get("label"), "threads");
  const Sites found = stacks(logs[1]);
  const auto of_threads = found.find("malloc thread_inner thread_main -");
  ASSERT_NE(of_threads, found.end()) << describe(found);
  EXPECT_EQ(of_threads->second, (Amount{9000, 9})) << "one of them on a supplied stack";
  // Handlers of exit and destructors have run.
  const Sites at_end = stacks(logs[2]);
  EXPECT_EQ(describe(at_end), describe({{"malloc main -", {-9000, -2}}}));
  int children = 0;
  for (const auto& [process, of_child] : all_logs()) {
    if (of_child[0].get("pid") == logs[0].get("pid")) continue;
    ++children;
    ASSERT_EQ(of_child.size(), 1u) << process;
    const Sites change = stacks(of_child[0]);
    EXPECT_EQ(change.count("malloc main -"), 1u) << describe(change);
  }
  EXPECT_EQ(children, 1);
}

TEST_F(MuslTest, QuickExit) {
  const Result result = expect_exit(run(named({ways_, "quick"})), 3);
  EXPECT_EQ(describe(stacks(logs_of(result.pid, 1)[0])), describe({{"malloc main -", {40, 1}}}));
}

// The same library goes on from one libc to the other.
TEST_F(MuslTest, BecomesAndStartsProgramsOfGlibc) {
  const std::string one_block = program("one_block");
  const Result glibc = run(traced({ways_, "exec", one_block}));
  EXPECT_EQ(glibc.how(), run(plain({one_block})).how()) << glibc.err;
  EXPECT_EQ(logs_of("one_block").size(), 1u);
  expect_exit(run(traced({program("starts"), "posix_spawn", ways_, "quick"})), 3);
  EXPECT_EQ(logs_of("ways").size(), 1u);
}

TEST_F(MuslTest, MemlogRun) {
  const Result result = expect_exit(
      run(plain({memlog_tool(), "run", "--output", out(), "--", ways_, "all", plugin_})), 5);
  EXPECT_HAS(result.err, "%  thread_inner < thread_main\n");
  EXPECT_LACKS(result.err, "untraced");
}

// In a root with musl, a program and the library alone.
TEST_F(MuslTest, RootWithMuslAlone) {
  if (getuid() != 0) GTEST_SKIP() << "only root may change the root";
  const std::string root = temp() + "/root";
  fs::create_directories(root + "/lib");
  fs::create_directories(root + "/tmp");
  fs::copy(fs::canonical("/lib/ld-musl-x86_64.so.1"), root + "/lib/ld-musl-x86_64.so.1");
  for (const std::string& file : {ways_, plugin_, library()}) fs::copy(file, root);
  expect_exit(run(plain({"/usr/sbin/chroot", root, "/lib/ld-musl-x86_64.so.1", "--preload",
                         "/libmtrace.so", "/ways", "quick"},
                        {{"MTRACE_OUTPUT", "/tmp"}})),
              3);
  check_memlogs(root + "/tmp");
  EXPECT_EQ(names_in(root + "/tmp").size(), 1u);
}

}  // namespace
}  // namespace mtrace::test
