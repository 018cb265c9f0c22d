// Allocations that failed stand in the report at their sites, as entries of their own kind.
#include "host_test.h"

namespace mtrace::test {
namespace {

class FailedTest : public HostTest {
 protected:
  // Failed allocations by site, from entries @failed.
  static std::map<std::string, int64_t> failed_sites(const Memlog& log) {
    std::map<std::string, int64_t> sites;
    for (const Entry& entry : log.entries) {
      if (entry.kind != "failed") continue;
      for (const Frame& frame : entry.frames) {
        if (!frame.function.starts_with("site_")) continue;
        sites[frame.function] += entry.blocks;
        break;
      }
    }
    return sites;
  }
  const std::map<std::string, int64_t> kExpected = {{"site_malloc", 5},
                                                    {"site_calloc", 2},
                                                    {"site_realloc", 1},
                                                    {"site_reallocarray", 2},
                                                    {"site_posix_memalign", 1}};
};

TEST_F(FailedTest, NamesTheSites) {
  for (const char* allocator :
       {"", ":libtcmalloc_minimal.so.4", ":libjemalloc.so.2", ":libmimalloc.so.2"}) {
    Command command = named({program("failures")});
    command.env["LD_PRELOAD"] += allocator;
    const Result result = expect_exit(run(command));
    const std::vector<Memlog> logs = logs_of(result.pid);
    ASSERT_EQ(logs.size(), 1u);
    EXPECT_EQ(failed_sites(logs[0]), kExpected);
    EXPECT_EQ(logs[0].number("failed-allocations"), 11);
    const Result shown =
        expect_exit(run(plain({memlog_tool(), "show", "--by", "failed", logs[0].path})));
    EXPECT_HAS(shown.out, "5 failed");
    EXPECT_LT(shown.out.find("site_malloc"), shown.out.find("site_calloc")) << shown.out;
    // A compiler may make two stacks of calloc's loop: then it stands among those with one.
    EXPECT_LT(shown.out.find("site_malloc"), shown.out.find("site_realloc")) << shown.out;
    EXPECT_HAS(shown.out, "site_calloc");
  }
}

// Bytes are exact up to 2^47-1 of a stack. Beyond, the entry says that there were more.
TEST_F(FailedTest, BytesAreExactOrSaidToBeMore) {
  const Result result = expect_exit(run(named({program("failures"), "exact"})));
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_EQ(logs.size(), 1u);
  int exact = 0;
  for (const Entry& entry : logs[0].entries) {
    if (entry.kind != "failed") continue;
    const bool is_exact = entry.bytes == int64_t{96} << 40;
    exact += is_exact;
    EXPECT_EQ(entry.counts.contains("saturated"), !is_exact);
    EXPECT_EQ(entry.bytes, is_exact ? int64_t{96} << 40 : (int64_t{1} << 47) - 1);
  }
  EXPECT_EQ(exact, 1);
  const Result shown = run(plain({memlog_tool(), "show", "--by", "failed", logs[0].path}));
  EXPECT_HAS(shown.out, "bytes are at least this");
}

// One line in the summary of memlog run, and at the end of memlog expire.
TEST_F(FailedTest, RunAndExpireSaySo) {
  const Result ran = expect_exit(run(plain({memlog_tool(), "run", "--", program("failures")})));
  EXPECT_HAS(ran.err, "11 allocations failed: no memory; 5 of them at main");

  Command command = traced({program("failures"), "wait"});
  command.env["MTRACE_LEDGER"] = temp();
  Process process(command);
  process.read_until("ready");
  Command watching = tool({"expire", "--after", "1h", std::to_string(process.pid())});
  Process watch(watching);
  for (auto line = watch.read_line(); line && line->find("from now on") == std::string::npos;) {
    line = watch.read_line();
  }
  process.write("x");
  process.read_until("done");
  process.close_input();
  expect_exit(process.wait());
  const Result watched = watch.wait();
  EXPECT_HAS(watched.out, "11 allocations failed: no memory; 5 of them at main");
}

// Without a failure there is no such entry, nor a word of it.
TEST_F(FailedTest, NothingWithout) {
  const Result result = expect_exit(run(named({program("missed_frees")})));
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_EQ(logs.size(), 1u);
  EXPECT_FALSE(logs[0].has("kind"));
  const Result shown = run(plain({memlog_tool(), "show", "--by", "failed", logs[0].path}));
  EXPECT_HAS(shown.out, "no failed allocation");
}

}  // namespace
}  // namespace mtrace::test
