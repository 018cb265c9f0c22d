// show of a file that was cut short.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tool_test.h"
#include "util/text.h"

namespace mtrace::test {
namespace {

using nlohmann::json;

// Cut behind each byte: what is shown are the entries that are complete, to the byte.
TEST(Partial, ShowsTheEntriesBeforeTheEnd) {
  const TemporaryDirectory directory;
  const std::string text = read_file(golden("app-4711-2.memlog"));
  size_t shown = 0;
  for (size_t size = 0; size < text.size(); size += size < 40 ? 1 : 7) {
    const std::string part = text.substr(0, size);
    write_file(directory / "cut.memlog", part);
    const Outcome result =
        memlog({"show", "--no-resolve", "--partial", "--json", directory / "cut.memlog"});
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

}  // namespace
}  // namespace mtrace::test
