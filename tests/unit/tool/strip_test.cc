// memlog strip and --cull: which blocks a log keeps, and that the others still count.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tool_test.h"

namespace mtrace::test {
namespace {

constexpr char kBlocks[] =
    "select address, size, usable, thread, stack, allocated_at, freed_at, freed_by, step "
    "from allocations where {} order by allocated_at, address";

std::string rows(const std::string& query, const std::string& log) {
  const Outcome result = memlog({"sql", "--no-resolve", "--format", "csv", query, log});
  EXPECT_EQ(result.status, 0) << query << '\n' << result.err;
  return result.out.substr(result.out.find('\n') + 1);
}

// Chains of blocks that live at least so long, nanoseconds.
std::string chains_of(uint64_t lifetime) {
  return fmt::format(
      "chain in (select chain from allocations group by chain "
      "having count(freed_at) < count(*) or max(freed_at) - min(allocated_at) >= {})",
      lifetime);
}

class Strip : public testing::Test {
 protected:
  std::string strip(const std::vector<std::string>& options, const std::string& log) {
    const std::string made = directory_ / fmt::format("{}.events", ++count_);
    std::vector<std::string> words = {"strip", "-o", made, log};
    words.insert(words.end(), options.begin(), options.end());
    const Outcome result = memlog(words);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.out + result.err, "");
    return made;
  }
  // Runs the shop and returns its log.
  std::string recorded(const std::string& setting) {
    const std::string place = directory_ / fmt::format("run{}", ++count_);
    const std::string found = shell(
        "mkdir {0} && cd {0} && env LD_PRELOAD={1} MTRACE_OUTPUT={0}/ MTRACE_EVENTS=1 "
        "MTRACE_EXIT_WAIT=600 {2} {3} >{0}/out && ls {0}/*.events",
        place, library(), Script{setting}, program("shop"));
    return found.substr(0, found.find('\n'));
  }
  // The report that memlog report --from makes of the end of a log.
  std::string report(const std::string& log) {
    const std::string place = directory_ / fmt::format("report{}", ++count_);
    const std::string made =
        shell("mkdir {0} && cd {0} && {1} report --from {2}", place, memlog_tool(), log);
    return place + '/' + made.substr(0, made.find('\n'));
  }
  static std::string totals_of_report(const std::string& report) {
    const std::string view = memlog({"show", "--no-resolve", "--json", report}).out;
    return totals_of(nlohmann::json::parse(view)["reports"][0]);
  }
  std::string totals(const std::string& log) { return totals_of_report(report(log)); }
  static std::string totals_of(const nlohmann::json& header) {
    return fmt::format("{} {} {}", header["allocated"].dump(), header["freed"].dump(),
                       header["live"].dump());
  }

  TemporaryDirectory directory_;
  int count_ = 0;
};

TEST_F(Strip, LeavesOutWhatLivesShorterAndCountsIt) {
  for (const char* time : {"1ms", "2ms", "3ms", "1s"}) {
    SCOPED_TRACE(time);
    const std::string made = strip({"--cull", time}, shop_log());
    const std::string text = time;
    const uint64_t unit = text.ends_with("ms") ? 1'000'000 : 1'000'000'000;
    const std::string whole =
        rows(fmt::format(kBlocks, chains_of(std::stoul(text) * unit)), shop_log());
    EXPECT_EQ(rows(fmt::format(kBlocks, "1"), made), whole);
    EXPECT_LT(lines_of(whole).size(), 5773u);
    EXPECT_EQ(totals(made), totals(shop_log()));
    EXPECT_EQ(rows("select kind, text, at from events where kind in ('note', 'report', 'end', "
                   "'thread-begin', 'thread-end', 'resident') order by at, kind",
                   made),
              rows("select kind, text, at from events where kind in ('note', 'report', 'end', "
                   "'thread-begin', 'thread-end', 'resident') order by at, kind",
                   shop_log()));
  }
}

TEST_F(Strip, CountsStackByStack) {
  const char* const counts =
      "select stack, live_bytes, allocated_blocks, allocated_bytes, freed_blocks, freed_bytes, "
      "temporary_blocks, short_lived_blocks, lifetime_min_ms, lifetime_max_ms from entries order "
      "by stack";
  const std::string whole = rows(counts, report(shop_log()));
  EXPECT_EQ(rows(counts, report(strip({"--cull", "1ms"}, shop_log()))), whole);
  EXPECT_EQ(rows(counts, report(strip({"--cull", "1s"}, shop_log()))), whole);
  EXPECT_GT(lines_of(whole).size(), 10u);
}

TEST_F(Strip, BySizeAndByStack) {
  const std::string large = strip({"--size", "100..200"}, shop_log());
  EXPECT_EQ(rows(fmt::format(kBlocks, "1"), large),
            rows(fmt::format(kBlocks,
                             "chain in (select chain from allocations where step = 0 and "
                             "size between 100 and 200)"),
                 shop_log()));
  EXPECT_EQ(rows("select count(*) > 900 from allocations", large), "1\n");
  EXPECT_EQ(totals(large), totals(shop_log()));
}

TEST_F(Strip, ByStack) {
  if (kNoMemlogFromTheLibrary != nullptr) GTEST_SKIP() << kNoMemlogFromTheLibrary;
  const std::string log = recorded("");
  const std::string only = strip({"--include", "function:^load_catalog$"}, log);
  const std::string without = strip({"--exclude", "function:^load_catalog$"}, log);
  EXPECT_EQ(rows("select min(size), max(size), count(*) from allocations", only), "120,120,1000\n");
  EXPECT_EQ(rows("select count(*) from allocations where size = 120", without), "0\n");
  EXPECT_EQ(rows("select count(*) + 1000 from allocations", without),
            rows("select count(*) from allocations", log));
  EXPECT_EQ(totals(only), totals(log));
  EXPECT_EQ(totals(without), totals(log));
}

TEST_F(Strip, AStrippedLogCanBeStripped) {
  const std::string once = strip({"--cull", "1ms"}, shop_log());
  const std::string twice = strip({"--cull", "3ms"}, once);
  EXPECT_EQ(rows(fmt::format(kBlocks, "1"), twice),
            rows(fmt::format(kBlocks, "1"), strip({"--cull", "3ms"}, shop_log())));
  EXPECT_EQ(totals(twice), totals(shop_log()));
  EXPECT_HAS(memlog({"events", "--no-resolve", twice}).out, " left-out ");
}

// While the log is written. No block of the program lives for a minute.
TEST_F(Strip, CullsWhileTheProgramRuns) {
  if (kNoMemlogFromTheLibrary != nullptr) GTEST_SKIP() << kNoMemlogFromTheLibrary;
  const std::string path = recorded("MTRACE_EVENTS_CULL_MS=60000");
  const std::string place = path.substr(0, path.rfind('/'));
  EXPECT_EQ(rows("select count(freed_at), sum(size), count(*) from allocations", path),
            rows("select 0, sum(bytes), sum(blocks) from entries where kind = 'heap'", place));
  EXPECT_EQ(rows("select count(*) from events where kind = 'end'", path), "1\n");
  const std::string last = shell("ls {}/*-4.memlog", place);
  EXPECT_EQ(totals(path), totals_of_report(last.substr(0, last.size() - 1)));
  EXPECT_HAS(memlog({"events", "--header", path}).out,
             "left-out: blocks that live shorter than 60000 ms\n");
}

}  // namespace
}  // namespace mtrace::test
