// show of a file that was cut short, of directories, and what leaks says with too few states.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "tool_test.h"
#include "util/text.h"

namespace mtrace::test {
namespace {

using nlohmann::json;

class Partial : public testing::Test {
 protected:
  Outcome show(const std::string& text, std::vector<std::string> options = {}) {
    write_file(directory_ / "cut.memlog", text);
    options.insert(options.begin(), {"show", "--no-resolve", "--partial"});
    options.push_back(directory_ / "cut.memlog");
    return memlog(options);
  }
  TemporaryDirectory directory_;
};

// Cut behind each byte: what is shown are the entries that are complete, to the byte.
TEST_F(Partial, ShowsTheEntriesBeforeTheEnd) {
  const std::string text = read_file(golden("app-4711-2.memlog"));
  size_t shown = 0;
  for (size_t size = 0; size < text.size(); size += size < 40 ? 1 : 7) {
    const std::string part = text.substr(0, size);
    const Outcome result = show(part, {"--json"});
    // The entries followed by another one or by the trailer, from the text itself.
    size_t stacks = 0;
    int64_t bytes = 0;
    std::optional<int64_t> open;
    const auto lines = util::split(part, '\n');
    for (size_t i = 0; i + 1 < lines.size(); ++i) {
      if (lines[i].starts_with('\t')) continue;
      if (open) {
        ++stacks;
        bytes += *open;
      }
      open.reset();
      if (lines[i].starts_with('+') || lines[i].starts_with('-')) {
        open = std::stoll(std::string(lines[i]));
      }
    }
    if (result.out.empty()) {
      EXPECT_EQ(result.status, 2) << size;  // the header is not complete
      EXPECT_EQ(stacks, 0u) << size;
      continue;
    }
    EXPECT_EQ(result.status, 1) << size;
    EXPECT_HAS(result.err, ": this is what could be read");
    const json report = json::parse(result.out)["reports"][0];
    EXPECT_EQ(report["partial"]["stack_count"], stacks) << size;
    EXPECT_EQ(report["partial"]["bytes"], bytes) << size;
    shown = std::max(shown, stacks);
  }
  EXPECT_EQ(shown, 6u);
}

TEST_F(Partial, IsMarked) {
  const std::string text = read_file(golden("app-4711-2.memlog"));
  const size_t second = text.find("\n+", text.find("\n+") + 1);
  const Outcome cut = show(text.substr(0, second + 1));
  EXPECT_EQ(cut.status, 1);
  EXPECT_TRUE(cut.out.starts_with("note: PARTIAL: the file ends at line ")) << cut.out;
  EXPECT_HAS(cut.out, "; missing: +");
  EXPECT_TRUE(cut.err.starts_with("memlog: " + (directory_ / "cut.memlog") + ":")) << cut.err;
  const Outcome whole = show(text);
  EXPECT_EQ(whole.status, 0);
  EXPECT_EQ(whole.err, "");
  EXPECT_EQ(whole.out, memlog({"show", "--no-resolve", golden("app-4711-2.memlog")}).out);
}

// Only an early end is forgiven.
TEST_F(Partial, DamageIsAnError) {
  EXPECT_EQ(show(read_file(golden("damaged.memlog"))).status, 2);
  EXPECT_EQ(show("").status, 2);
  EXPECT_EQ(show("hello\n").status, 2);
  const Outcome sum = memlog({"show", "--partial", "--sum", golden("app-4711-1.memlog")});
  EXPECT_EQ(sum.status, 2);
}

TEST(Directory, StandsForItsReports) {
  TemporaryDirectory directory;
  for (const char* name : {"app-4711-1.memlog", "app-4711-2.memlog", "app-4600-1.memlog"}) {
    write_file(directory / name, read_file(golden(name)));
  }
  for (const char* command : {"show", "tree"}) {
    // The last of the process that was started last.
    const Outcome one = memlog({command, directory.path()});
    EXPECT_EQ(one.status, 0) << one.err;
    EXPECT_EQ(one.out, memlog({command, directory / "app-4711-2.memlog"}).out);
    const Outcome sum = memlog({command, "--sum", directory.path()});
    EXPECT_EQ(sum.status, 0) << sum.err;
    EXPECT_EQ(sum.out, memlog({command, "--sum", directory / "app-4711-1.memlog",
                               directory / "app-4711-2.memlog", directory / "app-4600-1.memlog"})
                           .out);
    ::mkdir((directory / "none").c_str(), 0755);
    const Outcome none = memlog({command, directory / "none"});
    EXPECT_EQ(none.status, 1);
    EXPECT_EQ(none.err,
              "memlog: no report in " + (directory / "none") + ": memlog run PROGRAM makes one\n");
  }
}

TEST(LeaksWithFewStates, PointsToDiff) {
  std::vector<std::string> words = {"leaks"};
  for (int i = 1; i <= 4; ++i) words.push_back(golden("app-5000-" + std::to_string(i) + ".memlog"));
  const Outcome few = memlog(words);
  EXPECT_EQ(few.status, 0);
  EXPECT_TRUE(few.out.ends_with(
      "4 reports, 3 of them comparable, from report 2 to 4: 64900 bytes -> 68612 "
      "bytes live\n\n2 more are needed (report 1 and that at exit only count with --all): "
      "memlog run with a shorter --every,\nor memlog report svc between equal phases of work\nto "
      "compare two: memlog diff " +
      words[2] + " " + words[4] + "\n"))
      << few.out;
  const Outcome one = memlog({"leaks", words[1], words[2]});
  EXPECT_TRUE(one.out.ends_with("memlog diff " + words[1] + " " + words[2] + "\n")) << one.out;
  EXPECT_LACKS(memlog({"leaks", words[1]}).out, "memlog diff");
}

}  // namespace
}  // namespace mtrace::test
