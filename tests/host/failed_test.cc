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
    const Memlog log = only_log(
        expect_exit(run(named({program("failures")}, {{"LD_PRELOAD", library() + allocator}})))
            .pid);
    EXPECT_EQ(failed_sites(log), kExpected);
    EXPECT_EQ(log.number("failed-allocations"), 11);
    const Result shown = expect_exit(memlog({"show", "--by", "failed", log.path}));
    EXPECT_HAS(shown.out, "5 failed");
    EXPECT_LT(shown.out.find("site_malloc"), shown.out.find("site_calloc")) << shown.out;
    // A compiler may make two stacks of calloc's loop: then it stands among those with one.
    EXPECT_LT(shown.out.find("site_malloc"), shown.out.find("site_realloc")) << shown.out;
    EXPECT_HAS(shown.out, "site_calloc");
  }
}

// Bytes are exact up to 2^47-1 of a stack. Beyond, the entry says that there were more.
TEST_F(FailedTest, BytesAreExactOrSaidToBeMore) {
  const Memlog log = only_log(expect_exit(run(named({program("failures"), "exact"}))).pid);
  int exact = 0;
  for (const Entry& entry : log.entries) {
    if (entry.kind != "failed") continue;
    const bool is_exact = entry.bytes == int64_t{96} << 40;
    exact += is_exact;
    EXPECT_EQ(entry.counts.contains("saturated"), !is_exact);
    EXPECT_EQ(entry.bytes, is_exact ? int64_t{96} << 40 : (int64_t{1} << 47) - 1);
  }
  EXPECT_EQ(exact, 1);
  EXPECT_HAS(memlog({"show", "--by", "failed", log.path}).out, "bytes are at least this");
}

// One line in the summary of memlog run, and at the end of memlog expire.
TEST_F(FailedTest, RunAndExpireSaySo) {
  EXPECT_HAS(expect_exit(run(plain({memlog_tool(), "run", "--", program("failures")}))).err,
             "11 allocations failed: no memory; 5 of them at main");

  Ready process(traced({program("failures"), "wait"}, {{"MTRACE_LEDGER", temp()}}));
  Process watch(tool({"expire", "--after", "1h", process.id()}));
  for (auto line = watch.read_line(); line && line->find("from now on") == std::string::npos;) {
    line = watch.read_line();
  }
  process.say("x", "done");
  expect_exit(process.wait());
  EXPECT_HAS(watch.wait().out, "11 allocations failed: no memory; 5 of them at main");
}

// Without a failure there is no such entry, nor a word of it.
TEST_F(FailedTest, NothingWithout) {
  const Memlog log = only_log(expect_exit(run(named({program("missed_frees")}))).pid);
  EXPECT_FALSE(log.has("kind"));
  EXPECT_HAS(memlog({"show", "--by", "failed", log.path}).out, "no failed allocation");
}

}  // namespace
}  // namespace mtrace::test
