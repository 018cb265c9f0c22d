// Programs under valgrind: what the library needs that valgrind does not know is left out.
#include <memory>

#include "host_test.h"

namespace mtrace::test {
namespace {

class ValgrindTest : public HostTest {
 protected:
  Command under(const std::string& tool, const Command& command) const {
    Command changed = command;
    changed.argv = {"/usr/bin/valgrind", "-q", "--tool=" + tool};
    if (tool == "massif" || tool == "callgrind" || tool == "cachegrind") {
      changed.argv.push_back("--" + tool + "-out-file=/dev/null");
    }
    changed.argv.insert(changed.argv.end(), command.argv.begin(), command.argv.end());
    return changed;
  }
};

TEST_F(ValgrindTest, SeesNothingOfTheLibrary) {
  const Words plain_argv = {program("sandboxes"), "plain"};
  const Words counted = {"none", "cachegrind", "callgrind"};
  const Words replaced = {"memcheck", "massif", "helgrind", "drd"};
  const std::string line = "mtrace: not covered: " + program("sandboxes") +
                           " runs under a tool of valgrind that replaces malloc; nothing that it "
                           "allocates is counted\n";
  std::vector<std::pair<std::string, std::unique_ptr<Process>>> running;
  for (const auto& tools : {counted, replaced}) {
    for (const std::string& tool : tools) {
      running.emplace_back(tool, std::make_unique<Process>(under(tool, traced(plain_argv))));
    }
  }
  for (auto& [tool, process] : running) {
    const Result result = process->wait();
    const bool is_replaced = std::find(replaced.begin(), replaced.end(), tool) != replaced.end();
    EXPECT_TRUE(result.exited(0)) << tool << ": " << result.how() << result.err;
    EXPECT_EQ(result.out, "fine\n") << tool;
    const std::string expected = is_replaced ? line : "";
    // What the tool says itself is of its own making; no message is.
    EXPECT_TRUE(result.err.starts_with(expected)) << tool << ": " << result.err;
    for (const char* word : {"sigprocmask", "clone", "Warning", "nvalid", "libmtrace"}) {
      EXPECT_LACKS(result.err.substr(std::min(expected.size(), result.err.size())), word) << tool;
    }
    const std::vector<Memlog> logs = logs_of(result.pid);
    ASSERT_EQ(logs.size(), 3u) << tool << ": two by signals, one at exit";
    if (is_replaced) {
      EXPECT_HAS(logs[0].get("note"), "not covered: the program runs under a tool of valgrind")
          << tool;
    } else {
      EXPECT_GT(logs[0].amount("allocated").bytes, 0) << tool;
      EXPECT_EQ(logs[0].get("note"), "") << tool;
    }
  }
}

// memcheck finds what it finds without, to the byte.
TEST_F(ValgrindTest, MemchecksTotalsStay) {
  Command alone = under("memcheck", plain({"/bin/ls", "/usr"}));
  alone.argv[1] = "-v";
  Command with = under("memcheck", traced({"/bin/ls", "/usr"}));
  with.argv[1] = "-v";
  Process first(alone);
  Process second(with);
  const auto totals = [](const std::string& text) {
    const size_t at = text.find("total heap usage: ");
    return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
  };
  const std::string expected = totals(first.wait().err);
  EXPECT_NE(expected, "");
  EXPECT_EQ(totals(second.wait().err), expected);
}

}  // namespace
}  // namespace mtrace::test
