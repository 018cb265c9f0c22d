// How stacks of two sides find each other, and what a comparison does about reports that are
// missing.
#include "view/analyze/compare.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "model/profile/reader.h"

namespace mtrace {
namespace {

using analyze::Comparison;
using analyze::Table;

struct Stack {
  int64_t bytes;
  std::vector<std::string> frames;
};

// A memlog of heap entries; the module /PATH/app has this build-id.
Table table(const std::vector<Stack>& stacks, const std::string& build,
            const std::string& path = "/a/app") {
  Table out;
  uint64_t id = 1;
  for (const Stack& stack : stacks) {
    std::string text = "# memlog 2\n# program: /app\n# pid: 1\n# seq: 1\n# trigger: api\n";
    text += "# started: 2026-11-20T20:15:00.000000Z\n# taken: 2026-11-20T20:15:31.123456Z\n";
    text +=
        fmt::format("# delta: {0:+} bytes +1 blocks\n# live: {0} bytes 1 blocks\n", stack.bytes);
    text += "# lost: frames=0\n";
    text += fmt::format("{0:+}\tblocks=+1\tlive={0}\tstack={1:016x}\n", stack.bytes, id++);
    for (std::string frame : stack.frames) {
      const size_t at = frame.find("APP");
      if (at != std::string::npos) frame.replace(at, 3, path);
      text += '\t' + frame + '\n';
    }
    text += fmt::format("# module: {} build-id={} base=0x1000\n# end\n", path, build);
    out.merge(profile::read("f", text), {});
  }
  return out;
}

// "before>difference" by the source line of the innermost frame, else its function.
std::multimap<std::string, std::string> text_of(const Comparison& comparison) {
  std::multimap<std::string, std::string> out;
  for (const analyze::Row& row : comparison.table.rows()) {
    const profile::Frame& first = row.frames[0];
    out.emplace(first.source.empty() ? first.function : first.source,
                fmt::format("{}{:+}", *row.before, row.bytes));
  }
  return out;
}

using Expected = std::multimap<std::string, std::string>;

TEST(Compare, OneBuildByAddressAlone) {
  const Table a = table({{10, {"f\tf.c:1\t(APP+0x1)"}}, {5, {"f\tf.c:2\t(APP+0x2)"}}}, "aa");
  const Table b =
      table({{14, {"f\tf.c:1\t(APP+0x1)"}}, {7, {"f\tf.c:3\t(APP+0x3)"}}}, "aa", "/b/app");
  const Comparison found = analyze::compare(a, b);
  EXPECT_EQ(text_of(found), (Expected{{"f.c:1", "10+4"}, {"f.c:2", "5-5"}, {"f.c:3", "0+7"}}));
  EXPECT_EQ(found.by_name, 0u);
  EXPECT_EQ(found.added, 1u);
  EXPECT_EQ(found.removed, 1u);
}

TEST(Compare, AnotherBuildByNamesWithMovedLines) {
  const Table a = table({{10, {"f\tf.c:10\t(APP+0x1)", "main\tm.c:5\t(APP+0x9)"}},
                         {20, {"f\tf.c:20\t(APP+0x2)", "main\tm.c:5\t(APP+0x9)"}},
                         {1, {"g\tg.c:1\t(APP+0x3)"}}},
                        "aa");
  // Three lines more in f.c; g is another file's now.
  const Table b = table({{11, {"f\tf.c:13\t(APP+0x101)", "main\tm.c:6\t(APP+0x109)"}},
                         {25, {"f\tf.c:23\t(APP+0x102)", "main\tm.c:6\t(APP+0x109)"}},
                         {2, {"g\th.c:1\t(APP+0x103)"}}},
                        "bb", "/elsewhere/app");
  const Comparison found = analyze::compare(a, b);
  EXPECT_EQ(text_of(found),
            (Expected{{"f.c:13", "10+1"}, {"f.c:23", "20+5"}, {"g.c:1", "1-1"}, {"h.c:1", "0+2"}}));
  EXPECT_EQ(found.by_name, 2u);
}

TEST(Compare, SameLinesFirstThenInOrderElseTogether) {
  const Table a = table({{10, {"f\tf.c:10\t(APP+0x1)"}}, {20, {"f\tf.c:20\t(APP+0x2)"}}}, "aa");
  const Table same =
      table({{22, {"f\tf.c:20\t(APP+0x12)"}}, {13, {"f\tf.c:12\t(APP+0x11)"}}}, "bb");
  EXPECT_EQ(text_of(analyze::compare(a, same)), (Expected{{"f.c:12", "10+3"}, {"f.c:20", "20+2"}}));
  const Table more = table({{1, {"f\tf.c:1\t(APP+0x11)"}},
                            {2, {"f\tf.c:2\t(APP+0x12)"}},
                            {40, {"f\tf.c:3\t(APP+0x13)"}}},
                           "bb");
  EXPECT_EQ(text_of(analyze::compare(a, more)), (Expected{{"f.c:1", "30+13"}}));
}

TEST(Compare, CodeWithoutModuleByName) {
  const Table a = table({{10, {"js\t(0x7f01)", "main\tm.c:5\t(APP+0x9)"}}}, "aa");
  const Table b = table({{15, {"js\t(0x7f99)", "main\tm.c:5\t(APP+0x9)"}}}, "aa");
  EXPECT_EQ(text_of(analyze::compare(a, b)), (Expected{{"js", "10+5"}}));
}

}  // namespace
}  // namespace mtrace
