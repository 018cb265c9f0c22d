// MTRACE_MAX_MEMORY: a process whose tables reach the limit loses new blocks from then on and says
// so. And what tracing costs, in reports and to other processes.
#include "host_test.h"

namespace mtrace::test {
namespace {

class MemoryLimitTest : public HostTest {
 protected:
  Command limited(std::vector<std::string> argv, const std::string& most) const {
    Command command = traced(std::move(argv));
    command.env["MTRACE_MAX_MEMORY"] = most;
    command.env["MTRACE_ENTRIES"] = "all";
    return command;
  }
  std::vector<Memlog> reports(const Command& command, size_t count) {
    const Result result = expect_exit(run(command));
    EXPECT_EQ(result.err, "");
    std::vector<Memlog> logs = logs_of(result.pid);
    EXPECT_EQ(logs.size(), count);
    logs.resize(count);
    return logs;
  }
  static bool says_so(const Memlog& log) {
    for (const auto& [key, value] : log.meta) {
      if (key == "note" && value.find("the tables had reached MTRACE_MAX_MEMORY") != value.npos) {
        return true;
      }
    }
    return false;
  }
  static int64_t lost_blocks(const Memlog& log) {
    const std::string line = log.get("lost");
    const size_t at = line.find("blocks=");
    return at == line.npos ? -1 : std::stoll(line.substr(at + 7));
  }
  // NAME of the line `cost`; -1: it is not there.
  static int64_t cost(const Memlog& log, const std::string& name) {
    const std::string line = ' ' + log.get("cost");
    const size_t at = line.find(' ' + name + '=');
    return at == line.npos ? -1 : std::stoll(line.substr(at + name.size() + 2));
  }
};

constexpr int64_t kMiB = 1 << 20;

// 2,000 stacks of 240 blocks each take some 20 MiB of tables.
TEST_F(MemoryLimitTest, BeyondItNewBlocksAreLost) {
  constexpr int64_t kBlocks = 2000l * 240;
  const std::vector<Memlog> logs = reports(limited({program("sampling"), "2000", "60"}, "8M"), 3);
  for (const Memlog& log : logs) {
    EXPECT_TRUE(says_so(log));
    EXPECT_FALSE(log.has("sampled"));
    EXPECT_LT(cost(log, "memory"), 12 * kMiB);
    EXPECT_LT(cost(log, "shadow"), cost(log, "memory"));
  }
  const int64_t recorded = logs[0].amount("live").blocks;
  EXPECT_GT(recorded, kBlocks / 8);
  EXPECT_EQ(recorded + lost_blocks(logs[0]), kBlocks);
  // All that was recorded is freed, and the frees of others are unknown.
  EXPECT_EQ(logs[2].amount("live"), Amount{});
  EXPECT_EQ(lost_blocks(logs[2]), kBlocks * 3 / 2 - recorded);
  EXPECT_EQ(logs[2].number("unknown-frees"), lost_blocks(logs[2]));
}

TEST_F(MemoryLimitTest, BelowItEveryBlockCounts) {
  const std::vector<Memlog> logs = reports(limited({program("sampling"), "2000", "60"}, "1G"), 3);
  for (const Memlog& log : logs) {
    EXPECT_FALSE(says_so(log));
    EXPECT_FALSE(log.has("sampled"));
    EXPECT_GE(cost(log, "processor-ms"), 0);
  }
  EXPECT_GT(cost(logs[0], "memory"), 8 * kMiB);
  EXPECT_LT(cost(logs[2], "memory"), 4 * kMiB);  // nothing is live
  EXPECT_EQ(logs[0].amount("live").bytes, 2000l * 60 * 3740);
  EXPECT_EQ(logs[2].amount("live"), Amount{});
}

// Stacks alone pass it, too.
TEST_F(MemoryLimitTest, OfManyStacks) {
  const std::vector<Memlog> logs = reports(limited({program("many_stacks"), "200000"}, "16M"), 1);
  EXPECT_TRUE(says_so(logs[0]));
  EXPECT_LT(cost(logs[0], "memory"), 26 * kMiB);
}

// Threads that are inside a hook when recording ends: what was put in is counted and taken out.
TEST_F(MemoryLimitTest, ThreadsThatAreInAHook) {
  for (const char* most : {"2M", "4M", "6M"}) {
    for (const char* threads : {"1", "4"}) {
      SCOPED_TRACE(std::string(most) + ' ' + threads);
      const auto logs = reports(limited({program("outgrows"), threads, "60000"}, most), 3);
      EXPECT_TRUE(says_so(logs[0]));
      EXPECT_EQ(series_complaints(logs), std::vector<std::string>{});
      for (const Entry& entry : logs[1].entries) {
        if (entry.frames.empty() || entry.frames[0].module != program("outgrows")) continue;
        EXPECT_EQ(entry.live, 0) << entry.stack;
      }
    }
  }
}

TEST_F(MemoryLimitTest, InALedgerAndItsChildren) {
  Command command = limited({program("outgrows"), "2", "60000"}, "6M");
  command.env["MTRACE_LEDGER"] = temp() + "/";
  const auto logs = reports(command, 3);
  EXPECT_TRUE(says_so(logs[0]));
  for (const Entry& entry : logs[1].entries) {
    if (entry.frames.empty() || entry.frames[0].module != program("outgrows")) continue;
    EXPECT_EQ(entry.live, 0) << entry.stack;
  }
}

// The tables of blocks take 32 bytes a live block and 1 MB, whatever lies between blocks, and also
// of what is left of many.
TEST_F(MemoryLimitTest, TablesAreSmallWhateverTheHeap) {
  const auto tables = [&](const std::vector<std::string>& heap, int64_t* blocks) {
    std::vector<std::string> argv = {program("mixed_heap")};
    argv.insert(argv.end(), heap.begin(), heap.end());
    const std::vector<Memlog> logs = reports(traced(argv), heap[3] == "1" ? 1 : 2);
    *blocks = logs.back().amount("live").blocks;
    return cost(logs.back(), "memory");
  };
  int64_t few = 0;
  const int64_t nothing = tables({"1", "24", "0", "1"}, &few);
  for (const std::vector<std::string>& heap :
       std::vector<std::vector<std::string>>{{"100000", "24", "1000", "1"},
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

TEST_F(MemoryLimitTest, AnEventLogHasEveryBlock) {
  Command command = limited({program("sampling"), "10", "10"}, "8M");
  command.env["MTRACE_EVENTS"] = "1";
  const Result result = expect_exit(run(command));
  EXPECT_HAS(result.err, "MTRACE_MAX_MEMORY=8M is not for a process with an event log");
}

}  // namespace
}  // namespace mtrace::test
