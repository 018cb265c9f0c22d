// doc/queries.md: its answers are what its queries print.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tool_test.h"

namespace mtrace::test {
namespace {

constexpr char kQuery[] = "```sql\n";
constexpr char kFence[] = "```\n";

TEST(Queries, AnswersAreWhatTheQueriesPrint) {
  const std::string path = source_dir() + "/doc/queries.md";
  const std::string text = read_file(path);
  std::string renewed;
  size_t at = 0;
  size_t queries = 0;
  for (size_t begin; (begin = text.find(kQuery, at)) != std::string::npos; ++queries) {
    const size_t query = begin + sizeof kQuery - 1;
    const size_t end = text.find(kFence, query);
    ASSERT_NE(end, std::string::npos);
    const size_t answer = end + 2 * (sizeof kFence - 1);
    ASSERT_EQ(text.substr(answer - (sizeof kFence - 1), sizeof kFence - 1), kFence);
    const size_t behind = text.find(kFence, answer);
    ASSERT_NE(behind, std::string::npos);
    const Outcome result = memlog({"sql", "--no-resolve", text.substr(query, end - query),
                                   source_dir() + "/tests/golden/queries"});
    EXPECT_EQ(result.status, 0) << text.substr(query, end - query) << result.err;
    // An answer without rows tells the reader nothing.
    EXPECT_GT(std::count(result.out.begin(), result.out.end(), '\n'), 2)
        << text.substr(query, end - query);
    renewed += text.substr(at, answer - at) + result.out;
    at = behind;
  }
  renewed += text.substr(at);
  EXPECT_GE(queries, 20u);
  if (std::getenv("MEMLOG_UPDATE_GOLDEN") != nullptr) write_file(path, renewed);
  EXPECT_EQ(read_file(path), renewed);
}

}  // namespace
}  // namespace mtrace::test
