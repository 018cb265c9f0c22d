// LeakSanitizer's interface and suppressions where libmtrace.so is preloaded instead of it.
#include <fmt/format.h>
#include <sys/syscall.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "host_test.h"

namespace mtrace::test {
namespace {

using nlohmann::json;

class LeakInterfaceTest : public HostTest {
 protected:
  // `memlog COMMAND --unreachable ... -- leak_interface WHAT`.
  Result memlog(const std::string& command, const std::string& what,
                const std::vector<std::string>& more = {}, const std::string& lsan_options = "") {
    std::vector<std::string> words = {memlog_tool(), command, "--unreachable"};
    if (command == "run") words.insert(words.end(), {"-o", temp()});
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"--", program("leak_interface"), what});
    Command run_it = plain(words);
    if (!lsan_options.empty()) run_it.env["LSAN_OPTIONS"] = lsan_options;
    return run(run_it);
  }
  std::string write_patterns(const std::string& text) {
    const std::string path = temp() + "/suppressed.txt";
    std::ofstream(path) << text;
    return path;
  }
  static void expect_lost(const Result& result, unsigned times, const char* when) {
    EXPECT_NE(result.out.find(fmt::format("lost {} {}\n", 1008 * times, times)), std::string::npos)
        << result.out;
    EXPECT_NE(result.err.find(fmt::format("): definitely lost {} {} bytes in {} block", when,
                                          1008 * times, times)),
              std::string::npos)
        << result.err;
  }
};

TEST_F(LeakInterfaceTest, WhatTheProgramIgnoresIsNoLeak) {
  const Result named = memlog("run", "ignore");
  EXPECT_TRUE(named.exited(0)) << named.how() << named.err;
  expect_lost(named, 1, "at exit");
  const Result disabled = memlog("run", "disable");
  EXPECT_TRUE(disabled.exited(0)) << disabled.how() << disabled.err;
  expect_lost(disabled, 3, "at exit");
}

// A region in a block that nothing points to holds what stands in it, though not the block. What
// is no region any more holds nothing.
TEST_F(LeakInterfaceTest, ARootRegionHoldsWhatItPointsTo) {
  Command command = traced({program("leak_interface"), "roots"});
  command.env["MTRACE_LEDGER"] = out() + "/";
  Process process(command);
  process.read_until("ready");
  wait_until_blocked(process.pid(), SYS_read);
  const json found = json::parse(run(plain({memlog_tool(), "unreachable", "--json", "--pause",
                                            "10ms", std::to_string(process.pid())}))
                                     .out);
  EXPECT_EQ(found["definitely_lost_bytes"], 1008) << found;
  EXPECT_EQ(found["indirectly_lost_bytes"], 512) << found;
  EXPECT_EQ(found["possibly_lost_bytes"], 0) << found;
  EXPECT_TRUE(process.wait().exited(0));
}

// The counters are exact also of what is ignored: nothing else is told in reports.
TEST_F(LeakInterfaceTest, ReportsCountIgnoredBlocks) {
  ASSERT_TRUE(run(traced({program("leak_interface"), "disable"})).exited(0));
  const std::vector<Memlog> logs = logs_of("leak_interface");
  ASSERT_EQ(logs.size(), 1u);
  int64_t large = 0;
  for (const Entry& entry : logs[0].entries) {
    if (entry.bytes == 5000 || entry.bytes == 6000) large += entry.bytes;
  }
  EXPECT_EQ(large, 11000);
}

TEST_F(LeakInterfaceTest, ChecksWhenTheProgramAsks) {
  const Result clean = memlog("run", "none");
  EXPECT_TRUE(clean.exited(0)) << clean.how() << clean.err;
  EXPECT_EQ(clean.out, "check 0\n");
  EXPECT_NE(clean.err.find("): nothing definitely lost in a leak check ("), std::string::npos)
      << clean.err;
  const Result found = memlog("run", "recoverable");
  EXPECT_TRUE(found.exited(0)) << found.how() << found.err;
  EXPECT_EQ(found.out, "lost 1008 1\ncheck 1\ncheck 1\n");
  EXPECT_NE(found.err.find("): definitely lost in a leak check 1008 bytes in 1 block ("),
            std::string::npos)
      << found.err;
  EXPECT_NE(found.err.find("): definitely lost in a leak check 2016 bytes in 2 blocks ("),
            std::string::npos)
      << found.err;
  EXPECT_NE(found.err.find("): definitely lost at exit 2016 bytes in 2 blocks ("),
            std::string::npos)
      << found.err;
}

// As LeakSanitizer: the status is 23 or LSAN_OPTIONS's exitcode, and the exit is not looked at.
TEST_F(LeakInterfaceTest, AFatalCheckEndsTheProgram) {
  const Result fatal = memlog("run", "fatal");
  EXPECT_TRUE(fatal.exited(23)) << fatal.how() << fatal.err;
  EXPECT_EQ(fatal.out, "lost 1008 1\n");
  expect_lost(fatal, 1, "in a leak check");
  EXPECT_EQ(fatal.err.find("lost at exit"), std::string::npos) << fatal.err;
  EXPECT_TRUE(memlog("run", "fatal", {}, "verbosity=0:exitcode=7").exited(7));
  const Result goes_on = memlog("run", "fatal", {}, "exitcode=0");
  EXPECT_TRUE(goes_on.exited(0)) << goes_on.how() << goes_on.err;
  EXPECT_EQ(goes_on.out, "lost 1008 1\nwent on\n");
}

TEST_F(LeakInterfaceTest, WithoutMemlogNothingIsChecked) {
  EXPECT_EQ(run(traced({program("leak_interface"), "recoverable"})).out,
            "lost 1008 1\ncheck 0\ncheck 0\n");
  EXPECT_EQ(run(traced({program("leak_interface"), "fatal"})).out, "lost 1008 1\nwent on\n");
  EXPECT_EQ(run(plain({program("leak_interface")})).out, "no interface\n");
}

TEST_F(LeakInterfaceTest, SuppressionsAreThoseOfLeakSanitizer) {
  const std::string file = write_patterns("# known\nleak:^lose_plainly$\n");
  for (const bool by_option : {true, false}) {
    const std::vector<std::string> more =
        by_option ? std::vector<std::string>{"--suppressions", file} : std::vector<std::string>{};
    const std::string variable = by_option ? "" : "exitcode=7:suppressions='" + file + "'";
    const Result run_it = memlog("run", "fatal", more, variable);
    EXPECT_TRUE(run_it.exited(0)) << run_it.how() << run_it.err;
    EXPECT_EQ(run_it.out, "lost 1008 1\nwent on\n");
    EXPECT_NE(run_it.err.find("): nothing definitely lost in a leak check ("), std::string::npos)
        << run_it.err;
    // The block that only the suppressed one points to is not told either.
    EXPECT_NE(run_it.err.find("suppressed: 1512 bytes in 2 stacks\n"), std::string::npos)
        << run_it.err;
    const Result check = memlog("check", "ignore", more, variable);
    EXPECT_TRUE(check.exited(0)) << check.how() << check.out << check.err;
  }
  const Result check = memlog("check", "ignore");
  EXPECT_TRUE(check.exited(1)) << check.how() << check.out << check.err;
  const Result bad = memlog("run", "ignore", {"--suppressions", write_patterns("leak:\n")});
  EXPECT_TRUE(bad.exited(2)) << bad.how() << bad.err;
  const Result missing = memlog("run", "ignore", {}, "suppressions=/no/such.txt");
  EXPECT_TRUE(missing.exited(2)) << missing.how() << missing.err;
  EXPECT_NE(missing.err.find("LSAN_OPTIONS: suppressions"), std::string::npos) << missing.err;
}

TEST_F(LeakInterfaceTest, ARunningProcessCanBeSuppressedToo) {
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
  EXPECT_TRUE(process.wait().exited(0));
}

TEST_F(LeakInterfaceTest, LooksAgainAfterExitHandlers) {
  const auto exit_roots = [&](const char* end) {
    return run(plain({memlog_tool(), "run", "--unreachable", "--after-exit", "-o", temp(), "--",
                      program("exit_roots"), end}));
  };
  for (const char* end : {"return", "exit", "thread"}) {
    const Result result = exit_roots(end);
    EXPECT_TRUE(result.exited(4)) << end << result.how() << result.err;
    EXPECT_NE(result.err.find("): definitely lost at exit 3003 bytes in 3 blocks ("),
              std::string::npos)
        << end << result.err;
    // The handlers drop five blocks of 2,000 bytes.
    EXPECT_NE(result.err.find("): definitely lost after exit handlers 13003 bytes in 8 blocks ("),
              std::string::npos)
        << end << result.err;
  }
  const Result now = exit_roots("now");
  EXPECT_EQ(now.err.find("after exit handlers"), std::string::npos) << now.err;
  const Result alone = run(plain({memlog_tool(), "run", "--after-exit", "true"}));
  EXPECT_TRUE(alone.exited(2)) << alone.how() << alone.err;
}

// The interface of a program with LeakSanitizer stays LeakSanitizer's.
TEST_F(LeakInterfaceTest, ARealLeakSanitizerIsNotDisturbed) {
  const std::string built = temp() + "/with_lsan";
  const Result compiled =
      run(plain({"/usr/bin/gcc", "-g", "-fsanitize=leak", "-o", built,
                 source_dir() + "/tests/programs/leak_interface.c", "-pthread"}));
  ASSERT_TRUE(compiled.exited(0)) << compiled.err;
  for (const char* what : {"none", "recoverable", "fatal", "ignore", "disable"}) {
    const Result alone = run(plain({built, what}));
    const Result below = run(traced({built, what}));
    EXPECT_EQ(alone.how(), below.how()) << what << below.err;
    EXPECT_EQ(alone.out, below.out) << what;
    const auto summary = [](const std::string& text) {
      const size_t at = text.find("SUMMARY: ");
      return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
    };
    EXPECT_EQ(summary(below.err), summary(alone.err)) << what << below.err;
  }
}

}  // namespace
}  // namespace mtrace::test
