// Suppressions of LeakSanitizer, and looks for lost blocks after exit handlers.
#include <fmt/format.h>
#include <sys/syscall.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "host_test.h"

namespace mtrace::test {
namespace {

using nlohmann::json;

class SuppressionsTest : public HostTest {
 protected:
  // `memlog COMMAND --unreachable ... -- lost_blocks`.
  Result memlog(const std::string& command, const std::vector<std::string>& more = {},
                const std::string& lsan_options = "") {
    std::vector<std::string> words = {memlog_tool(), command, "--unreachable"};
    if (command == "run") words.insert(words.end(), {"-o", temp()});
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"--", program("lost_blocks")});
    Command run_it = plain(words);
    if (!lsan_options.empty()) run_it.env["LSAN_OPTIONS"] = lsan_options;
    return run(run_it);
  }
  std::string write_patterns(const std::string& text) {
    const std::string path = temp() + "/suppressed.txt";
    std::ofstream(path) << text;
    return path;
  }
};

TEST_F(SuppressionsTest, AreThoseOfLeakSanitizer) {
  EXPECT_HAS(memlog("run").err, "): definitely lost at exit 1008 bytes in 1 block (");
  const std::string file = write_patterns("# known\nleak:^lose_plainly$\n");
  for (const bool by_option : {true, false}) {
    const std::vector<std::string> more =
        by_option ? std::vector<std::string>{"--suppressions", file} : std::vector<std::string>{};
    const std::string variable = by_option ? "" : "exitcode=7:suppressions='" + file + "'";
    const Result run_it = expect_exit(memlog("run", more, variable));
    EXPECT_HAS(run_it.err, "): nothing definitely lost at exit (");
    // The block that only the suppressed one points to is not told either.
    EXPECT_HAS(run_it.err, "suppressed: 1512 bytes in 2 stacks\n");
    const Result check = expect_exit(memlog("check", more, variable));
  }
  const Result check = expect_exit(memlog("check"), 1);
  const Result bad = expect_exit(memlog("run", {"--suppressions", write_patterns("leak:\n")}), 2);
  const Result missing = expect_exit(memlog("run", {}, "suppressions=/no/such.txt"), 2);
  EXPECT_HAS(missing.err, "LSAN_OPTIONS: suppressions");
}

TEST_F(SuppressionsTest, ARunningProcessCanBeSuppressedToo) {
  Command command = traced({program("held_blocks")});
  command.env["MTRACE_LEDGER"] = out() + "/";
  Process process(command);
  process.read_until("ready");
  wait_until_blocked(process.pid(), SYS_read);
  const auto look = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {memlog_tool(), "unreachable", "--json", "--pause", "10ms"};
    words.insert(words.end(), more.begin(), more.end());
    words.push_back(std::to_string(process.pid()));
    return json::parse(run(plain(words)).out);
  };
  const json all = look({});
  const json some = look({"--suppressions", write_patterns("leak:make_lost_list\n")});
  // The list: 104 bytes, and five nodes of 88 that hang on it.
  EXPECT_EQ(some["suppressed_bytes"], 104 + 5 * 88) << some;
  EXPECT_EQ(some["suppressed_blocks"], 6);
  EXPECT_EQ(some["definitely_lost_bytes"], all["definitely_lost_bytes"].get<int>() - 104);
  EXPECT_EQ(some["indirectly_lost_bytes"], all["indirectly_lost_bytes"].get<int>() - 5 * 88);
  EXPECT_EQ(some["reachable_bytes"], all["reachable_bytes"]);
  EXPECT_FALSE(all.contains("suppressed_bytes"));
  expect_exit(process.wait());
}

TEST_F(SuppressionsTest, LooksAgainAfterExitHandlers) {
  const auto exit_roots = [&](const char* end) {
    return run(plain({memlog_tool(), "run", "--unreachable", "--after-exit", "-o", temp(), "--",
                      program("exit_roots"), end}));
  };
  for (const char* end : {"return", "exit", "thread"}) {
    const Result result = exit_roots(end);
    EXPECT_TRUE(result.exited(4)) << end << result.how() << result.err;
    EXPECT_HAS(result.err, "): definitely lost at exit 3003 bytes in 3 blocks (") << end;
    // The handlers drop five blocks of 2,000 bytes.
    EXPECT_HAS(result.err, "): definitely lost after exit handlers 13003 bytes in 8 blocks (")
        << end;
  }
  const Result now = exit_roots("now");
  EXPECT_LACKS(now.err, "after exit handlers");
  const Result alone = expect_exit(run(plain({memlog_tool(), "run", "--after-exit", "true"})), 2);
}

}  // namespace
}  // namespace mtrace::test
