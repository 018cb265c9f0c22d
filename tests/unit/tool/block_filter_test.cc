// The options that choose blocks of an event log, held against SQL over the same log: SQLite
// decides there, from the table of allocations.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tool_test.h"

namespace mtrace::test {
namespace {

std::string one_answer(const std::string& query) {
  const Outcome result = memlog({"sql", "--no-resolve", "--format", "csv", query, shop_log()});
  EXPECT_EQ(result.status, 0) << query << '\n' << result.err;
  return result.out.substr(result.out.find('\n') + 1);
}

// "live blocks,live bytes,allocations,allocated bytes" of the blocks that meet the condition.
std::string by_sql(const std::string& condition) {
  return one_answer(
      "select sum(freed_at is null), coalesce(sum(size) filter (where freed_at is null), 0), "
      "count(*), coalesce(sum(size), 0) from allocations where " +
      condition);
}
// The same of the report that show makes.
std::string by_options(std::vector<std::string> options) {
  options.insert(options.begin(), {"show", "--no-resolve", "--json", "--events", shop_log()});
  const Outcome result = memlog(options);
  EXPECT_EQ(result.status, 0) << result.err;
  if (result.status != 0) return {};
  const nlohmann::json report = nlohmann::json::parse(result.out)["reports"][0];
  const auto number = [&](const char* key, const char* part) {
    return report.contains(key) ? report[key].value(part, int64_t{0}) : 0;
  };
  return fmt::format("{},{},{},{}\n", number("live", "blocks"), number("live", "bytes"),
                     number("allocated", "blocks"), number("allocated", "bytes"));
}

// Times of the log's beginning and of its markers, nanoseconds since 1970.
int64_t at(const std::string& marker) {
  return std::stoll(one_answer("select min(at) from events where text = '" + marker + "'"));
}
std::string time_text(int64_t nanoseconds) {
  const std::string text = one_answer(fmt::format("select time_text({})", nanoseconds));
  return text.substr(0, text.find('\n'));
}

struct Case {
  std::vector<std::string> options;
  std::string condition;
};

TEST(BlockFilter, ChoosesWhatSqlChooses) {
  // Whole microseconds, as texts of times have them.
  const int64_t served = at("served") / 1000 * 1000;
  const int64_t moved = at("moved") / 1000 * 1000;
  const std::string groups = "stack in (select stack from allocations group by stack having {})";
  const std::string chains = "chain in (select chain from allocations group by chain having {})";
  const std::string thread =
      one_answer("select tid from threads where thread = 2");  // which allocates
  const std::string block = one_answer("select printf('0x%x', min(address)) from allocations");
  const auto line = [](const std::string& text) { return text.substr(0, text.find('\n')); };
  const auto in_groups = [&](const std::string& what) {
    return fmt::format(fmt::runtime(groups), what);
  };
  const auto in_chains = [&](const std::string& what) {
    return fmt::format(fmt::runtime(chains), what);
  };
  const std::string early = time_text(served);
  const std::string late = time_text(moved);
  const std::vector<Case> cases = {
      {{}, "1"},
      {{"--size", "100..300"}, "size between 100 and 300"},
      {{"--address", line(block)}, "address = (select min(address) from allocations)"},
      {{"--thread", line(thread)}, "thread = 2"},
      {{"--lifetime", "100us..1ms"}, "freed_at - allocated_at between 100000 and 1000000"},
      {{"--lifetime", "1ms.."}, "freed_at is null or freed_at - allocated_at >= 1000000"},
      {{"--born", early + ".."}, fmt::format("allocated_at >= {}", served)},
      {{"--freed", early + ".." + late}, fmt::format("freed_at between {} and {}", served, moved)},
      {{"--alive-at", early}, fmt::format("alive_at(allocated_at, freed_at, {})", served)},
      {{"--alive-until", early}, fmt::format("freed_at is null or freed_at >= {}", served)},
      {{"--leaked"}, "freed_at is null"},
      {{"--between", "started..served"},
       "allocated_at between (select at from events where text = 'started') and "
       "(select at from events where text = 'served')"},
      {{"--between", "..started"},
       "allocated_at <= (select at from events where text = 'started')"},
      {{"--stack-depth", "6.."},
       "stack in (select stack from frames where not inlined group by stack having count(*) >= 6)"},
      {{"--chain-length", "3..4"}, in_chains("count(*) between 3 and 4")},
      {{"--chain-age", "10us..1s"},
       in_chains("count(freed_at) = count(*) and max(freed_at) - min(allocated_at) between 10000 "
                 "and 1000000000")},
      {{"--group-first", early + ".."}, in_groups(fmt::format("min(allocated_at) >= {}", served))},
      {{"--group-last", ".." + early}, in_groups(fmt::format("max(allocated_at) <= {}", served))},
      {{"--group-interval", "2ms.."},
       in_groups("max(allocated_at) - min(allocated_at) >= 2000000")},
      {{"--group-leaked", "1..99"},
       in_groups("sum(freed_at is null) * 100.0 / count(*) between 1 and 99")},
      {{"--size", "64..", "--alive-at", early, "--group-leaked", "1.."},
       fmt::format("size >= 64 and alive_at(allocated_at, freed_at, {}) and ", served) +
           in_groups("sum(freed_at is null) * 100.0 / count(*) >= 1")},
  };
  std::set<std::string> answers;
  for (const Case& one : cases) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(one.options, " ")));
    const std::string expected = by_sql(one.condition);
    EXPECT_EQ(by_options(one.options), expected);
    EXPECT_NE(expected, "0,0,0,0\n");  // the filter has something to choose
    answers.insert(expected);
  }
  EXPECT_GT(answers.size(), cases.size() * 3 / 4);  // and something to leave out
}

// memlog events prints the lives of the same blocks.
TEST(BlockFilter, ChoosesEvents) {
  const auto events = [](std::vector<std::string> options) {
    options.insert(options.begin(), {"events", "--no-resolve", shop_log()});
    const Outcome result = memlog(options);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  };
  const std::string chosen = events({"--chain-length", "5"});
  const auto count = [&](const std::string& word) {
    size_t found = 0;
    for (size_t i = chosen.find(word); i != std::string::npos; i = chosen.find(word, i + 1))
      ++found;
    return std::to_string(found) + '\n';
  };
  const std::string chains =
      " from allocations where chain in (select chain from allocations group by chain having "
      "count(*) = 5)";
  EXPECT_EQ(count(" realloc 0x"), one_answer("select count(*)" + chains + " and step > 0"));
  EXPECT_EQ(count(" free 0x"), one_answer("select count(distinct chain)" + chains));
  EXPECT_NE(count(" free 0x"), "0\n");
}

TEST(BlockFilter, TreeAndExportsTakeIt) {
  const Outcome tree =
      memlog({"tree", "--no-resolve", "--events", shop_log(), "--group-leaked", "1..99"});
  EXPECT_EQ(tree.status, 0) << tree.err;
  const Outcome folded = memlog({"export", "-f", "folded", "--no-resolve", "--events", shop_log(),
                                 "--group-leaked", "1..99"});
  EXPECT_EQ(folded.status, 0) << folded.err;
  const std::string expected = one_answer(
      "select sum(size) from allocations where freed_at is null and stack in (select stack from "
      "allocations group by stack having sum(freed_at is null) * 100.0 / count(*) between 1 and "
      "99)");
  int64_t sum = 0;
  std::istringstream lines(folded.out);
  for (std::string line; std::getline(lines, line);)
    sum += std::stoll(line.substr(line.rfind(' ')));
  EXPECT_EQ(std::to_string(sum) + '\n', expected);
}

TEST(BlockFilter, SaysWhatItNeeds) {
  const Outcome without = memlog({"show", "--alive-at", "3s", "x.memlog"});
  EXPECT_EQ(without.status, 2);
  EXPECT_EQ(without.err,
            "memlog: show: --alive-at is about single blocks, which a report does not have: give "
            "the event log of the run with --events LOG (memlog run --events writes one)\n");
  const Outcome both = memlog({"show", "--events", shop_log(), "x.memlog"});
  EXPECT_EQ(both.status, 2);
  const Outcome time = memlog({"tree", "--events", shop_log(), "--born", "soon"});
  EXPECT_EQ(time.status, 2);
  EXPECT_NE(time.err.find("tree: --born soon is not a range of times"), std::string::npos)
      << time.err;
  const Outcome marker = memlog({"show", "--events", shop_log(), "--between", "never.."});
  EXPECT_EQ(marker.status, 1);
  EXPECT_NE(marker.err.find("no note and no report with the text never"), std::string::npos)
      << marker.err;
  const Outcome pipe = memlog({"events", "--follow", "--lifetime", "1s..", shop_log()});
  EXPECT_EQ(pipe.status, 2);
}

}  // namespace
}  // namespace mtrace::test
