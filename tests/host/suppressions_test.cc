// Suppressions of LeakSanitizer, and looks for lost blocks after exit handlers.
#include "host_test.h"

namespace mtrace::test {
namespace {

class SuppressionsTest : public HostTest {
 protected:
  // `memlog COMMAND --unreachable ... -- lost_blocks`.
  Result memlog(const std::string& command, const Words& more = {},
                const std::string& lsan_options = "") {
    Words words = {memlog_tool(), command, "--unreachable"};
    if (command == "run") words.insert(words.end(), {"-o", temp()});
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"--", program("lost_blocks")});
    Command run_it = plain(words);
    if (!lsan_options.empty()) run_it.env["LSAN_OPTIONS"] = lsan_options;
    return run(run_it);
  }
  std::string write_patterns(const std::string& text) {
    write_file(temp() + "/suppressed.txt", text);
    return temp() + "/suppressed.txt";
  }
};

TEST_F(SuppressionsTest, AreThoseOfLeakSanitizer) {
  EXPECT_HAS(memlog("run").err, "): definitely lost at exit 1008 bytes in 1 block (");
  const std::string file = write_patterns("# known\nleak:^lose_plainly$\n");
  for (const bool by_option : {true, false}) {
    const Words more = by_option ? Words{"--suppressions", file} : Words{};
    const std::string variable = by_option ? "" : "exitcode=7:suppressions='" + file + "'";
    const Result run_it = expect_exit(memlog("run", more, variable));
    EXPECT_HAS(run_it.err, "): nothing definitely lost at exit (");
    // The block that only the suppressed one points to is not told either.
    EXPECT_HAS(run_it.err, "suppressed: 1512 bytes in 2 stacks\n");
    expect_exit(memlog("check", more, variable));
  }
  expect_exit(memlog("check"), 1);
  expect_exit(memlog("run", {"--suppressions", write_patterns("leak:\n")}), 2);
  const Result missing = expect_exit(memlog("run", {}, "suppressions=/no/such.txt"), 2);
  EXPECT_HAS(missing.err, "LSAN_OPTIONS: suppressions");
}

TEST_F(SuppressionsTest, LooksAgainAfterExitHandlers) {
  const auto exit_roots = [&](const char* end) {
    return run(plain({memlog_tool(), "run", "--unreachable", "--after-exit", "-o", temp(), "--",
                      program("exit_roots"), end}));
  };
  for (const char* end : {"return", "exit", "thread"}) {
    const Result result = exit_roots(end);
    expect_exit(result, 4);
    EXPECT_HAS(result.err, "): definitely lost at exit 3003 bytes in 3 blocks (");
    // The handlers drop five blocks of 2,000 bytes.
    EXPECT_HAS(result.err, "): definitely lost after exit handlers 13003 bytes in 8 blocks (");
  }
  EXPECT_LACKS(exit_roots("now").err, "after exit handlers");
}

}  // namespace
}  // namespace mtrace::test
