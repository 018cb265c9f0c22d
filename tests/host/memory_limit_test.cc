// MTRACE_MAX_MEMORY: a process whose tables reach the limit loses new blocks from then on and says
// so. And what tracing costs, in reports and to other processes.
#include "host_test.h"

namespace mtrace::test {
namespace {

class MemoryLimitTest : public HostTest {
 protected:
  Command limited(Words argv, const std::string& most) const {
    return traced(std::move(argv), {{"MTRACE_MAX_MEMORY", most}, {"MTRACE_ENTRIES", "all"}});
  }
  static bool says_so(const Memlog& log) {
    for (const std::string& note : log.all("note")) {
      if (note.find("the tables had reached MTRACE_MAX_MEMORY") != note.npos) return true;
    }
    return false;
  }
};

constexpr int64_t kMiB = 1 << 20;

// 2,000 stacks of 240 blocks each take some 20 MiB of tables.
TEST_F(MemoryLimitTest, BeyondItNewBlocksAreLost) {
  constexpr int64_t kBlocks = 2000l * 240;
  const std::vector<Memlog> logs =
      reports_of(limited({program("sampling"), "2000", "60"}, "8M"), 3);
  for (const Memlog& log : logs) {
    EXPECT_TRUE(says_so(log));
    EXPECT_FALSE(log.has("sampled"));
    EXPECT_LT(log.numbers("cost").at("memory"), 12 * kMiB);
    EXPECT_LT(log.numbers("cost").at("shadow"), log.numbers("cost").at("memory"));
  }
  const int64_t recorded = logs[0].amount("live").blocks;
  EXPECT_GT(recorded, kBlocks / 8);
  EXPECT_EQ(recorded + logs[0].numbers("lost")["blocks"], kBlocks);
  // All that was recorded is freed, and the frees of others are unknown.
  EXPECT_EQ(logs[2].amount("live"), Amount{});
  EXPECT_EQ(logs[2].numbers("lost")["blocks"], kBlocks * 3 / 2 - recorded);
  EXPECT_EQ(logs[2].number("unknown-frees"), logs[2].numbers("lost")["blocks"]);
}

TEST_F(MemoryLimitTest, BelowItEveryBlockCounts) {
  const std::vector<Memlog> logs =
      reports_of(limited({program("sampling"), "2000", "60"}, "1G"), 3);
  for (const Memlog& log : logs) {
    EXPECT_FALSE(says_so(log));
    EXPECT_FALSE(log.has("sampled"));
    EXPECT_GE(log.numbers("cost").at("processor-ms"), 0);
  }
  EXPECT_GT(logs[0].numbers("cost").at("memory"), 8 * kMiB);
  EXPECT_LT(logs[2].numbers("cost").at("memory"), 4 * kMiB);  // nothing is live
  EXPECT_EQ(logs[0].amount("live").bytes, 2000l * 60 * 3740);
  EXPECT_EQ(logs[2].amount("live"), Amount{});
}

// Stacks alone pass it, too.
TEST_F(MemoryLimitTest, OfManyStacks) {
  const std::vector<Memlog> logs =
      reports_of(limited({program("many_stacks"), "200000"}, "16M"), 1);
  EXPECT_TRUE(says_so(logs[0]));
  EXPECT_LT(logs[0].numbers("cost").at("memory"), 26 * kMiB);
}

// Threads that are inside a hook when recording ends: what was put in is counted and taken out.
// Also in a ledger.
TEST_F(MemoryLimitTest, ThreadsThatAreInAHook) {
  const struct {
    const char* most;
    const char* threads;
    Settings settings;
  } kRuns[] = {{"2M", "4", {}}, {"4M", "1", {}}, {"6M", "2", {{"MTRACE_LEDGER", temp() + "/"}}}};
  for (const auto& [most, threads, settings] : kRuns) {
    SCOPED_TRACE(std::string(most) + ' ' + threads);
    Command command = limited({program("outgrows"), threads, "30000"}, most);
    command.env.insert(settings.begin(), settings.end());
    const auto logs = reports_of(command, 3);
    EXPECT_TRUE(says_so(logs[0]));
    EXPECT_EQ(series_complaints(logs), Words{});
    for (const Entry& entry : logs[1].entries) {
      if (entry.frames.empty() || entry.frames[0].module != program("outgrows")) continue;
      EXPECT_EQ(entry.live, 0) << entry.stack;
    }
  }
}

// The tables of blocks take 32 bytes a live block and 1 MB, whatever lies between blocks, and also
// of what is left of many.
TEST_F(MemoryLimitTest, TablesAreSmallWhateverTheHeap) {
  const auto tables = [&](const Words& heap, int64_t* blocks) {
    const std::vector<Memlog> logs =
        reports_of(traced(joined({program("mixed_heap")}, heap)), heap[3] == "1" ? 1 : 2);
    *blocks = logs.back().amount("live").blocks;
    return logs.back().numbers("cost").at("memory");
  };
  int64_t few = 0;
  const int64_t nothing = tables({"1", "24", "0", "1"}, &few);
  for (const Words& heap : std::vector<Words>{{"100000", "24", "1000", "1"},
                                              {"100000", "24", "4000", "1"},
                                              {"50000", "24", "8000", "1"},
                                              {"20000", "24", "16000", "1"},
                                              {"5000", "24", "60000", "1"},
                                              {"1000000", "24", "0", "1"},
                                              {"500000", "100", "0", "1"},
                                              {"300000", "300", "0", "1"},
                                              {"2000000", "40", "0", "2000"},
                                              {"300000", "24", "1000", "300"}}) {
    SCOPED_TRACE(heap[0] + " of " + heap[1] + " and " + heap[2] + ", one of " + heap[3]);
    int64_t blocks = 0;
    const int64_t taken = tables(heap, &blocks) - nothing;
    EXPECT_GE(blocks, std::stol(heap[0]) / std::stol(heap[3]));
    EXPECT_LE(taken, blocks * 32 + kMiB);
    EXPECT_GE(taken, blocks * 7);
  }
}

}  // namespace
}  // namespace mtrace::test
