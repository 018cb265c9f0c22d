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

const std::string kChain = "chain in (select chain from allocations group by chain having ";
const std::string kStack = "stack in (select stack from allocations group by stack having ";

TEST(BlockFilter, ChoosesWhatSqlChooses) {
  // Whole microseconds, as texts of times have them.
  const int64_t served = at("served") / 1000 * 1000;
  const std::string thread =
      one_answer("select tid from threads where thread = 2");  // which allocates
  const auto line = [](const std::string& text) { return text.substr(0, text.find('\n')); };
  const std::string early = time_text(served);
  const std::string shared = kStack + "sum(freed_at is null) * 100.0 / count(*) between 1 and 99)";
  const std::vector<Case> cases = {
      {{}, "1"},
      {{"--size", "100..300"}, "size between 100 and 300"},
      {{"--thread", line(thread)}, "thread = 2"},
      {{"--lifetime", "100us..1ms"}, "freed_at - allocated_at between 100000 and 1000000"},
      {{"--lifetime", "1ms.."}, "freed_at is null or freed_at - allocated_at >= 1000000"},
      {{"--born", early + ".."}, fmt::format("allocated_at >= {}", served)},
      {{"--leaked"}, "freed_at is null"},
      {{"--where", "lifetime > 0.001"}, "freed_at - allocated_at > 1000000"},
      {{"--where", shared}, shared},
      {{"--where", "size < 64 or 0", "--leaked"}, "size < 64 and freed_at is null"},
      {{"--size", "64..", "--where", kChain + "count(*) between 3 and 4)"},
       "size >= 64 and " + kChain + "count(*) between 3 and 4)"},
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
  const std::string chosen = events({"--where", kChain + "count(*) = 5)"});
  const auto count = [&](const std::string& word) {
    size_t found = 0;
    for (size_t i = chosen.find(word); i != std::string::npos; i = chosen.find(word, i + 1))
      ++found;
    return std::to_string(found) + '\n';
  };
  const std::string chains = " from allocations where " + kChain + "count(*) = 5)";
  EXPECT_EQ(count(" realloc 0x"), one_answer("select count(*)" + chains + " and step > 0"));
  EXPECT_EQ(count(" free 0x"), one_answer("select count(distinct chain)" + chains));
  EXPECT_NE(count(" free 0x"), "0\n");
}

TEST(BlockFilter, TreeAndExportsTakeIt) {
  const std::string shared = kStack + "sum(freed_at is null) * 100.0 / count(*) between 1 and 99)";
  const Outcome tree = memlog({"tree", "--no-resolve", "--events", shop_log(), "--where", shared});
  EXPECT_EQ(tree.status, 0) << tree.err;
  const Outcome folded =
      memlog({"export", "-f", "folded", "--no-resolve", "--events", shop_log(), "--where", shared});
  EXPECT_EQ(folded.status, 0) << folded.err;
  const std::string expected =
      one_answer("select sum(size) from allocations where freed_at is null and " + shared);
  int64_t sum = 0;
  std::istringstream lines(folded.out);
  for (std::string line; std::getline(lines, line);)
    sum += std::stoll(line.substr(line.rfind(' ')));
  EXPECT_EQ(std::to_string(sum) + '\n', expected);
}

}  // namespace
}  // namespace mtrace::test
