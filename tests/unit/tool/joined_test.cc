// Cut stacks that whole ones continue: who is joined, who is not, and that it is said.
#include "view/analyze/joined.h"

#include <gtest/gtest.h>

#include "model/profile/reader.h"
#include "tool_test.h"
#include "view/analyze/table.h"

namespace mtrace::test {
namespace {

using analyze::Row;
using analyze::Table;

// A report of stacks, each a word of one-letter functions from the innermost on; "." ends it where
// it was cut.
std::string report_of(const std::vector<std::string>& stacks) {
  std::string entries;
  for (const std::string& stack : stacks) {
    entries += "+64\tblocks=+1\tlive=64\tstack=" + std::string(15, '0') +
               std::to_string(&stack - stacks.data() + 1) + '\n';
    for (const char letter : stack) {
      if (letter == '.') {
        entries += "\t...\n";
        continue;
      }
      entries += std::string("\t") + letter + "_\t(/bin/app+0x" +
                 std::to_string(static_cast<int>(letter)) + ")\n";
    }
  }
  std::string text = small_memlog({"x"});
  const size_t begin = text.find("\n+64") + 1;
  const size_t end = text.find("# end");
  const std::string bytes = std::to_string(64 * stacks.size());
  const std::string blocks = std::to_string(stacks.size());
  text = text.substr(0, begin) + entries + text.substr(end);
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"# delta: +64 bytes +1 blocks",
                                            "# delta: +" + bytes + " bytes +" + blocks + " blocks"},
        {"# live: 64 bytes 1 blocks", "# live: " + bytes + " bytes " + blocks + " blocks"}}) {
    const size_t at = text.find(from);
    if (at == std::string::npos) throw std::runtime_error("no line " + from + " in\n" + text);
    text.replace(at, from.size(), to);
  }
  return text;
}

// The stacks of the report once they are joined, as above, with "|" where one is.
std::vector<std::string> joined(const std::vector<std::string>& stacks) {
  profile::Memlog memlog = profile::read("test", report_of(stacks));
  Table table = Table::of(memlog);
  analyze::join_cut(table);
  std::vector<std::string> out;
  for (const Row& row : table.rows()) {
    std::string letters;
    for (size_t i = 0; i < row.frames.size(); ++i) {
      if (row.joined != 0 && i == row.joined) letters += '|';
      letters += row.frames[i].function.text()[0];
    }
    out.push_back(letters + (row.cut ? "." : ""));
  }
  return out;
}

using Stacks = std::vector<std::string>;

TEST(Joined, ByTheTwoOutermostCallers) {
  EXPECT_EQ(joined({"xyzab.", "qabcm"}), (Stacks{"xyzab|cm", "qabcm"}));
  EXPECT_EQ(joined({"xyzab.", "abcm"}), (Stacks{"xyzab|cm", "abcm"}));
  // One is not enough: who calls b is who calls a, too.
  EXPECT_EQ(joined({"xyzab.", "qdbcm"}), (Stacks{"xyzab.", "qdbcm"}));
  EXPECT_EQ(joined({"b.", "qabcm"}), (Stacks{"b.", "qabcm"}));
}

TEST(Joined, OnlyWhereAllGoOnAlike) {
  EXPECT_EQ(joined({"xab.", "qabcm", "rabcm"}), (Stacks{"xab|cm", "qabcm", "rabcm"}));
  EXPECT_EQ(joined({"xab.", "qabcm", "rabdm"}), (Stacks{"xab.", "qabcm", "rabdm"}));
  // A recursion passes there twice.
  EXPECT_EQ(joined({"xab.", "qabcabm"}), (Stacks{"xab.", "qabcabm"}));
  // A stack that was cut lends nothing, also not what it has borrowed.
  EXPECT_EQ(joined({"xab.", "yzab.", "qabc."}), (Stacks{"xab.", "yzab.", "qabc."}));
  EXPECT_EQ(joined({"xyab.", "pxy.", "qabm"}), (Stacks{"xyab|m", "pxy.", "qabm"}));
}

TEST(Joined, IsSaidAndNotForPrograms) {
  TemporaryDirectory directory;
  const std::string file = directory.path() + "/one.memlog";
  write_file(file, report_of({"xab.", "qabcm"}));
  const std::string note =
      "... 1 cut, and continued as the only whole stack with the same callers\n";
  const std::string shown = memlog({"show", "--no-header", file}).out;
  EXPECT_NE(shown.find("    b_  (app)\n    (joined)\n    c_  (app)\n    m_  (app)\n"),
            std::string::npos)
      << shown;
  EXPECT_NE(shown.find(note), std::string::npos) << shown;
  EXPECT_NE(memlog({"show", "--oneline", file}).out.find("x_ < a_ < b_ < (joined) < c_ < m_"),
            std::string::npos);
  EXPECT_NE(memlog({"tree", file}).out.find(note), std::string::npos);
  EXPECT_EQ(memlog({"show", "--json", file}).out.find("joined"), std::string::npos);
  for (const char* whole : {"--frames=all", "--by=stack", "--include=x_"}) {
    EXPECT_EQ(memlog({"show", whole, file}).out.find("joined"), std::string::npos) << whole;
  }
}

TEST(Joined, InPicturesAndPagesToo) {
  TemporaryDirectory directory;
  const std::string file = directory.path() + "/one.memlog";
  write_file(file, report_of({"xab.", "qabcm"}));
  const auto shows = [&](const std::vector<std::string>& format) {
    std::vector<std::string> words = {"export", file, "-f"};
    words.insert(words.end(), format.begin(), format.end());
    const Outcome done = memlog(words);
    EXPECT_NE(done.out.find("c_"), std::string::npos) << done.err;
    return done.out.find("(joined)") != std::string::npos;
  };
  for (const char* format : {"flamegraph", "dot", "html"}) EXPECT_TRUE(shows({format})) << format;
  for (const char* format : {"folded", "speedscope", "csv", "jsonl"}) {
    EXPECT_FALSE(shows({format})) << format;
  }
  EXPECT_FALSE(shows({"flamegraph", "--frames=all"}));
}

}  // namespace
}  // namespace mtrace::test
