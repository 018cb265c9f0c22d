// Ends by a signal. With MTRACE_REPORT_ON_FATAL there is a report of what was held, and the end is
// what it would have been: the same status, the same core file, the program's own handlers first.
#include <sys/personality.h>
#include <sys/resource.h>

#include "host_test.h"

namespace mtrace::test {
namespace {

class DeathTest : public HostTest {
 protected:
  Result die(const Words& words, bool report = true) {
    return expect_same(traced(joined({program("deaths")}, words),
                              report ? Settings{{"MTRACE_REPORT_ON_FATAL", "1"}} : Settings{}));
  }
  static void expect_signal(const Result& result, int signal) {
    EXPECT_EQ(result.how(), "signal " + std::to_string(signal));
  }
  static Sites sites(const std::vector<Memlog>& logs) {
    return site_sums(logs, program("deaths"), program("deaths"));
  }
  void expect_report(const Result& result, const std::string& name, const Sites& held) {
    const std::vector<Memlog> logs = logs_of(result.pid, 1);
    EXPECT_EQ(logs[0].get("trigger"), "exit");
    EXPECT_EQ(logs[0].get("label"), name);
    EXPECT_EQ(sites(logs), held);
  }
  const Sites kept_ = {{"site_kept", {1005, 1}}};
};

struct Death {
  const char* mode;
  int signal;
  const char* name;
};

class DeathByTest : public DeathTest, public ::testing::WithParamInterface<Death> {};

TEST_P(DeathByTest, IsReported) {
  for (const bool thread : {false, true}) {
    const Result result = die(thread ? Words{GetParam().mode, "thread"} : Words{GetParam().mode});
    expect_signal(result, GetParam().signal);
    ASSERT_NO_FATAL_FAILURE(expect_report(result, GetParam().name, kept_));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Signals, DeathByTest,
    ::testing::Values(Death{"segv", SIGSEGV, "SIGSEGV"}, Death{"kernel", SIGSEGV, "SIGSEGV"},
                      Death{"bus", SIGBUS, "SIGBUS"}, Death{"ill", SIGILL, "SIGILL"},
                      Death{"trap", SIGTRAP, "SIGTRAP"}, Death{"fpe", SIGFPE, "SIGFPE"},
                      Death{"abort", SIGABRT, "SIGABRT"}, Death{"term", SIGTERM, "SIGTERM"},
                      Death{"int", SIGINT, "SIGINT"}, Death{"hup", SIGHUP, "SIGHUP"},
                      Death{"quit", SIGQUIT, "SIGQUIT"}, Death{"cpu", SIGXCPU, "SIGXCPU"}),
    [](const auto& info) { return std::string(info.param.mode); });

// From outside, while the program waits.
TEST_F(DeathTest, FromOutside) {
  Ready process(named({program("deaths"), "waits"}, {{"MTRACE_REPORT_ON_FATAL", "1"}}));
  wait_until("pause", [&] { return process_state(process.pid()) == 'S'; });
  process.send(SIGTERM);
  const Result result = process.wait();
  expect_signal(result, SIGTERM);
  ASSERT_NO_FATAL_FAILURE(expect_report(result, "SIGTERM", kept_));
  EXPECT_NE(logs_of(result.pid)[0].get("resolved"), "no") << "the end waits for names";
}

// Without room for a handler there is none, as ever; with an alternate stack there is.
TEST_F(DeathTest, StackOverflow) {
  for (const char* where : {"", "thread"}) {
    Words words = {"overflow"};
    if (*where != '\0') words.emplace_back(where);
    Result result = die(words);
    expect_signal(result, SIGSEGV);
    EXPECT_TRUE(all_logs().empty());
    words[0] = "overflow_alternate";
    result = die(words);
    expect_signal(result, SIGSEGV);
    ASSERT_NO_FATAL_FAILURE(expect_report(result, "SIGSEGV", kept_));
    fs::remove(report_path("deaths", result.pid, 1));
  }
}

TEST_F(DeathTest, ProgramsOwnHandlers) {
  expect_exit(die({"jumps"}), 3);
  const Result result = die({"passes_on"});
  expect_signal(result, SIGSEGV);
  EXPECT_EQ(result.out, "ready\nown handler\n");
  ASSERT_NO_FATAL_FAILURE(
      expect_report(result, "SIGSEGV", {{"site_kept", {1005, 1}}, {"site_in_handler", {70, 1}}}));
  expect_exit(die({"reads_back"}), 4);
  expect_exit(die({"ignores"}), 5);
}

// Of several that wait, the one that comes first ends the program.
TEST_F(DeathTest, SeveralAtOnce) { EXPECT_TRUE(WIFSIGNALED(die({"several"}).status)); }

TEST_F(DeathTest, OfChildren) {
  expect_exit(die({"vfork"}), 6);
  EXPECT_EQ(all_logs().size(), 1u) << "a vfork child has no report";
  const Result result = expect_exit(die({"fork"}), 7);
  Sites child;
  for (const auto& [name, logs] : all_logs()) {
    if (logs[0].number("parent") == result.pid) {
      EXPECT_EQ(logs[0].get("label"), "SIGTERM");
      child = sites(logs);
    }
  }
  EXPECT_EQ(child, (Sites{{"site_in_handler", {70, 1}}}));
}

TEST_F(DeathTest, NothingUnlessAskedFor) {
  for (const char* mode : {"segv", "term", "abort"}) die({mode}, false);
  EXPECT_TRUE(all_logs().empty());
}

// The core file shows the same place.
TEST_F(DeathTest, CoreFile) {
  if (read_file("/proc/sys/kernel/core_pattern") != "core\n") {
    GTEST_SKIP() << "core files go elsewhere";
  }
  Words told;
  for (const bool with : {false, true}) {
    const std::string directory = temp() + (with ? "/with" : "/without");
    fs::create_directory(directory);
    Command command =
        with ? traced({program("deaths"), "segv"}) : plain({program("deaths"), "segv"});
    if (with) command.env["MTRACE_REPORT_ON_FATAL"] = "1";
    command.directory = directory;
    command.before_exec = [] {
      personality(ADDR_NO_RANDOMIZE);
      const rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
      setrlimit(RLIMIT_CORE, &limit);
    };
    const Result result = run(command);
    EXPECT_TRUE(WIFSIGNALED(result.status) && WCOREDUMP(result.status)) << result.how();
    std::string core;
    for (const auto& file : fs::directory_iterator(directory)) core = file.path();
    ASSERT_NE(core, "");
    const Result gdb = run(plain({"/usr/bin/gdb", "-q", "-batch", "-nx", "-ex", "bt", "-ex",
                                  "p $_siginfo._sifields._sigfault.si_addr", "-ex",
                                  "p $_siginfo.si_code", program("deaths"), core}));
    std::string facts;
    for (const std::string& line : lines_of(gdb.out)) {
      if (line.starts_with("#") || line.starts_with("$")) facts += line + "\n";
    }
    told.push_back(facts);
  }
  EXPECT_HAS(told[0], "die_here");
  EXPECT_EQ(told[0], told[1]);
}

}  // namespace
}  // namespace mtrace::test
