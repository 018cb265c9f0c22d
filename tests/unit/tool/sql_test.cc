// memlog sql: the manual lists its tables. That its answers are those of the views, of the files
// and of sqlite3: transcripts/sql_agrees.txt.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tool_test.h"

namespace mtrace::test {
namespace {

// doc/sql.md has what .schema prints, and what .functions prints.
TEST(Sql, TheManualListsTheTables) {
  const std::string path = source_dir() + "/doc/sql.md";
  const std::string manual = read_file(path);
  const std::string begin = "<!-- memlog sql .schema -->\n```\n";
  const std::string end = "```\n<!-- end -->";
  const size_t from = manual.find(begin);
  const size_t to = manual.find(end, from);
  ASSERT_NE(to, std::string::npos);
  const std::string listed =
      memlog({"sql", ".schema"}).out + "\n" + memlog({"sql", ".functions"}).out;
  const std::string wanted = manual.substr(0, from) + begin + listed + manual.substr(to);
  if (std::getenv("MEMLOG_UPDATE_GOLDEN") != nullptr) write_file(path, wanted);
  EXPECT_EQ(read_file(path), wanted);
  for (const std::string& line : lines_of(listed)) EXPECT_LE(line.size(), 100u) << line;
}

}  // namespace
}  // namespace mtrace::test
