// memlog sql over an event log: what tests/programs/shop.c is known to do.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tool_test.h"

namespace mtrace::test {
namespace {

class SqlEvents : public testing::Test {
 protected:
  // One run for all tests. The program waits until its log is complete.
  static void SetUpTestSuite() {
    if (kNoMemlogFromTheLibrary != nullptr) return;
    directory_ = new TemporaryDirectory;
    shell("cd {0} && LD_PRELOAD={1} MTRACE_OUTPUT={0}/ MTRACE_EVENTS=1 MTRACE_EXIT_WAIT=600 {2}",
          directory_->path(), library(), program("shop"));
    ASSERT_EQ(rows("select count(*) from events where kind = 'end'"), "1\n");
  }
  static void TearDownTestSuite() { delete directory_; }
  void SetUp() override {
    if (kNoMemlogFromTheLibrary != nullptr) GTEST_SKIP() << kNoMemlogFromTheLibrary;
  }

  static std::string log() {
    const std::string found = rows("select event_log from processes");
    return found.substr(0, found.find('\n'));
  }
  static std::string rows(const std::string& query, const std::string& operand) {
    const Outcome result = memlog({"sql", "--format", "csv", query, operand});
    EXPECT_EQ(result.status, 0) << query << '\n' << result.err;
    return result.out.substr(result.out.find('\n') + 1);
  }
  static std::string rows(const std::string& query) { return rows(query, directory_->path()); }

  static TemporaryDirectory* directory_;
};

TemporaryDirectory* SqlEvents::directory_ = nullptr;

TEST_F(SqlEvents, BlocksLiveAsTheProgramHasThem) {
  const auto blocks = [](const std::string& function, const std::string& what) {
    return rows(
        fmt::format("select {} from allocations where own_frame(stack) = '{}'", what, function));
  };
  EXPECT_EQ(blocks("load_catalog", "count(*), count(freed_at), sum(size), min(call)"),
            "1000,0,120000,calloc\n");
  EXPECT_EQ(blocks("session_open", "count(*), count(freed_at), sum(size)"), "800,720,25600\n");
  EXPECT_EQ(blocks("parse", "count(*), count(freed_at), sum(freed_by = thread)"), "802,802,802\n");
  // One thread allocates the items, and another frees them.
  EXPECT_EQ(blocks("item_new", "count(*), sum(freed_by <> thread), count(distinct thread)"),
            "500,500,1\n");
  EXPECT_EQ(blocks("cache_put", "count(*), count(*) - count(freed_at)"), "267,64\n");
  EXPECT_EQ(rows("select count(*) from allocations where usable < size"), "0\n");
  EXPECT_EQ(rows("select count(*) from allocations where freed_at < allocated_at"), "0\n");
}

// Each reply is a chain of number % 5 reallocs, which double it.
TEST_F(SqlEvents, ReallocsAreStepsOfOneChain) {
  EXPECT_EQ(rows("select step, count(*), min(size), max(size) from allocations "
                 "where own_frame(stack) = 'reply' group by step order by step"),
            "0,800,64,64\n1,640,128,128\n2,480,256,256\n3,320,512,512\n4,160,1024,1024\n");
  EXPECT_EQ(rows("select count(distinct chain), min(last), max(last) from (select chain, "
                 "max(step) as last, count(*) as steps, min(step) as first from allocations "
                 "where own_frame(stack) = 'reply' group by chain having steps = last + 1)"),
            "800,0,4\n");
  // A step ends when the next begins.
  EXPECT_EQ(rows("with steps as materialized (select * from allocations "
                 "where own_frame(stack) = 'reply') "
                 "select count(*), sum(a.freed_at = b.allocated_at) from steps a join steps b "
                 "on a.chain = b.chain and b.step = a.step + 1"),
            "1600,1600\n");
}

TEST_F(SqlEvents, WhatWasAliveAtAReportIsTheReport) {
  for (const char* label : {"started", "served", "moved"}) {
    const std::string report = rows(
        fmt::format("select stack, sum(bytes) as live from entries join reports using (report) "
                    "where kind = 'heap' and seq <= (select seq from reports where label = '{}') "
                    "group by stack having live <> 0 order by stack",
                    label));
    const std::string replay = rows(
        fmt::format("select stack, sum(size) as live from allocations, "
                    "(select at from events where kind = 'report' and text = '{}') "
                    "where alive_at(allocated_at, freed_at, at) group by stack having live <> 0 "
                    "order by stack",
                    label));
    EXPECT_NE(report, "");
    EXPECT_EQ(replay, report) << label;
  }
}

TEST_F(SqlEvents, ConditionsSelectTheSameBlocks) {
  const std::string middle = "(select at from events where kind = 'report' and text = 'served')";
  for (const char* column : {"allocated_at", "freed_at"}) {
    for (const char* condition : {"<", "<=", ">", ">="}) {
      EXPECT_EQ(rows(fmt::format("select count(*), sum(id) from allocations where {} {} {}", column,
                                 condition, middle)),
                rows(fmt::format("select count(*), sum(id) from allocations where +{} {} {}",
                                 column, condition, middle)))
          << column << condition;
    }
  }
  EXPECT_EQ(rows("select count(*), sum(id) from allocations where freed_at is null"),
            rows("select count(*), sum(id) from allocations where +freed_at is null"));
  EXPECT_EQ(rows(fmt::format("select count(*) from events where at between {0} and {0}", middle)),
            rows(fmt::format("select count(*) from events where +at between {0} and {0}", middle)));
}

TEST_F(SqlEvents, EventsAndThreadsAreThere) {
  EXPECT_EQ(rows("select text from events where kind in ('note', 'report') and text <> '' "
                 "order by event"),
            "started\nserving 800 requests\nserved\nmoving 500 items\nmoved\n");
  EXPECT_EQ(rows("select count(*) from threads"), "5\n");
  EXPECT_EQ(rows("select count(*) from processes where event_log like '%.events'"), "1\n");
  EXPECT_EQ(rows("select count(*) from processes"), "1\n");
  // What was allocated, less what was freed.
  EXPECT_EQ(rows("select sum(kind = 'allocation') - sum(kind = 'free') from events"),
            rows("select count(*) - count(freed_at) from allocations"));
}

// memlog report replays the log by itself, and memlog show reads what that wrote.
TEST_F(SqlEvents, SumsAreThoseOfTheOtherCommands) {
  TemporaryDirectory directory;
  shell("cd {} && {} report --from {} >made", directory.path(), memlog_tool(), log());
  std::string made = read_file(directory / "made");
  made = directory / made.substr(0, made.find('\n'));
  const std::string view = shell("{} show --no-resolve --json {}", memlog_tool(), made);
  const nlohmann::json header = nlohmann::json::parse(view)["reports"][0];
  const std::string heap = "from allocations";
  const auto sums = [](const nlohmann::json& one) {
    return fmt::format("{},{}\n", one["bytes"].get<int64_t>(), one["blocks"].get<int64_t>());
  };
  EXPECT_EQ(rows("select sum(size), count(*) " + heap), sums(header["allocated"]));
  EXPECT_EQ(rows("select sum(size), count(*) " + heap + " where freed_at is not null"),
            sums(header["freed"]));
  EXPECT_EQ(rows("select sum(size), count(*) " + heap + " where freed_at is null"),
            sums(header["live"]));
  EXPECT_EQ(rows("select max(live_bytes) from memory", log()),
            fmt::format("{}\n", header["peak"]["bytes"].get<int64_t>()));
  const std::string by_stack =
      "select stack, sum(bytes), sum(allocated_blocks), sum(freed_blocks) from entries "
      "where kind = 'heap' group by stack order by stack";
  EXPECT_EQ(rows("select stack, sum(size) - sum(iif(freed_at is null, 0, size)), count(*), "
                 "count(freed_at) from allocations group by stack order by stack"),
            rows(by_stack, made));
}

// Without the reports of its process.
TEST_F(SqlEvents, ALogAloneHasTheTablesOfReportsToo) {
  EXPECT_EQ(rows("select kind, text from markers order by at", log()),
            rows("select kind, text from markers order by at"));
  EXPECT_EQ(rows("select module, build_id, base from modules order by 1", log()),
            rows("select module, build_id, base from modules order by 1"));
  EXPECT_EQ(rows("select sum(allocations) from memory", log()),
            rows("select count(*) from allocations"));
  EXPECT_EQ(rows("select program, pid, started_at, reports from processes", log()),
            rows("select program, pid, started_at, 0 from processes"));
}

TEST_F(SqlEvents, AreSaved) {
  TemporaryDirectory directory;
  const std::string file = directory / "log.db";
  EXPECT_EQ(memlog({"sql", "--save", file, log()}).status, 0);
  for (const char* query :
       {"select count(freed_at), sum(freed_at % 65537), sum(chain), max(step) from allocations",
        "select count(*), sum(at % 65537), sum(event), count(stack) from events",
        "select thread, tid, name from threads order by thread"}) {
    std::string saved = shell("sqlite3 -csv {} {}", file, query);
    std::erase(saved, '\r');
    EXPECT_EQ(saved, rows(query, log())) << query;
  }
}

// Sums without the events of a damaged chunk would be wrong.
TEST_F(SqlEvents, DamageEndsTheQuery) {
  TemporaryDirectory directory;
  const std::string file = directory / "damaged.events";
  std::string content = read_file(log());
  content[content.size() / 2] ^= 1;
  write_file(file, content);
  for (const char* table : {"allocations", "events", "threads", "memory", "markers"}) {
    const Outcome result = memlog({"sql", fmt::format("select count(*) from {}", table), file});
    EXPECT_EQ(result.status, 2) << table;
    EXPECT_EQ(result.err, file +
                              ":1: the event log is damaged (chunks: 1); memlog events prints the "
                              "rest\n");
  }
}

}  // namespace
}  // namespace mtrace::test
