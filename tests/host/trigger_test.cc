// What asks for a report, and what else the host notices of it: nothing.
#include "host_test.h"

namespace mtrace::test {
namespace {

class TriggerTest : public HostTest {
 protected:
  // `signals MODE NUMBER` under the library, the same without it for its output.
  Command signals(const std::string& mode, const Settings& settings = {}) const {
    return traced({program("signals"), mode, std::to_string(SIGUSR1)}, settings);
  }
};

// Mode of programs/idle.c, the system call in which it waits, whether a handled signal ends it.
struct Idle {
  const char* mode;
  long system_call;
  int interrupted;
};

class IdleTest : public TriggerTest, public ::testing::WithParamInterface<Idle> {};

TEST_P(IdleTest, ReportsAtOnce) {
  const Idle& idle = GetParam();
  Process process(traced({program("idle"), idle.mode}), "ready");
  if (idle.system_call >= 0) wait_until_blocked(process.pid(), idle.system_call);
  process.send(SIGUSR1);
  wait_for_report("idle", process.pid(), 1);
  // Blocked again, or still: a second report is as good.
  if (idle.interrupted != 1 && idle.system_call >= 0) {
    wait_until_blocked(process.pid(), idle.system_call);
  }
  process.send(SIGUSR1);
  wait_for_report("idle", process.pid(), 2);
  process.write("x");
  const Result result = expect_exit(process.wait());
  EXPECT_EQ(result.err, "");
  const std::string last = lines_of(result.out).back();
  if (idle.interrupted == 0) {
    EXPECT_EQ(last, "read 1 interrupted 0") << "the call must go on after the report";
  } else {
    EXPECT_TRUE(last.starts_with("read 1 interrupted ")) << last;
  }
  const std::vector<Memlog> logs = logs_of(result.pid, 3);
  EXPECT_EQ(logs[0].get("trigger"), "signal");
  EXPECT_EQ(logs[1].get("trigger"), "signal");
  EXPECT_EQ(logs[2].get("trigger"), "exit");
  EXPECT_EQ(site_sums({logs[0]}, program("idle"), program("idle")),
            (Sites{{"site_idle", {5000, 1}}}));
  EXPECT_EQ(site_sums(logs, program("idle"), program("idle")), (Sites{{"site_idle", {5000, 1}}}));
}

// interrupted: 0 the call restarts, 1 it returns at each signal and the program goes on to read,
// 2 it returns and is made again.
INSTANTIATE_TEST_SUITE_P(Calls, IdleTest,
                         ::testing::Values(Idle{"read", SYS_read, 0}, Idle{"pause", SYS_pause, 1},
                                           Idle{"sleep", SYS_clock_nanosleep, 1},
                                           Idle{"poll", SYS_poll, 2},
                                           Idle{"select", SYS_pselect6, 2},
                                           Idle{"epoll", SYS_epoll_wait, 2},
                                           Idle{"condition", SYS_futex, 0},
                                           Idle{"join", SYS_futex, 0}, Idle{"malloc", -1, 0}),
                         [](const auto& info) { return std::string(info.param.mode); });

// In a program of one thread, kill(getpid(), ...) returns after the report.
TEST_F(TriggerTest, KillReturnsAfterTheReport) {
  EXPECT_EQ(
      site_sums({reports_of(signals("conduct"), 4)[0]}, program("signals"), program("signals")),
      (Sites{{"site_signals", {4321, 1}}}));
}

TEST_F(TriggerTest, BlockedSignalWaits) {
  Process process(signals("blocked"));
  EXPECT_EQ(process.read_line(), "pending 1");
  EXPECT_FALSE(fs::exists(report_path("signals", process.pid(), 1)));
  process.write("\n");
  EXPECT_EQ(logs_of(expect_exit(process.wait()).pid, 2)[0].get("trigger"), "signal");
}

// What each trigger does to a program (programs/signals.c) that has dealings with its signal.
class SignalTest : public HostTest, public ::testing::WithParamInterface<int> {
 protected:
  static bool toggles() { return GetParam() == SIGUSR2; }
  Command signals(const std::string& mode, const Settings& settings = {}) const {
    Command command = traced({program("signals"), mode, std::to_string(GetParam())}, settings);
    if (toggles()) command.env["MTRACE_TOGGLE_SIGNAL"] = "USR2";
    return command;
  }
  // It was taken so many times: each writes a report, or toggles and writes none.
  void expect_taken(const Result& result, size_t times) const {
    expect_exit(result);
    EXPECT_EQ(result.err, "");
    const std::vector<Memlog> logs = logs_of(result.pid, toggles() ? 1 : times + 1);
    EXPECT_EQ(logs[0].get("trigger"), toggles() || times == 0 ? "exit" : "signal");
    EXPECT_EQ(logs[0].get("recording"), toggles() && times % 2 == 1 ? "stopped" : "");
    // What is said of the signal is about the one for reports.
    EXPECT_FALSE(toggles() && logs[0].has("note"));
  }
};

INSTANTIATE_TEST_SUITE_P(Triggers, SignalTest, ::testing::Values(SIGUSR1, SIGUSR2),
                         [](const auto& info) {
                           return std::string(info.param == SIGUSR1 ? "Report" : "Toggle");
                         });

TEST_P(SignalTest, ProgramSeesTheDefaultAction) {
  const Result result = run(signals("query"));
  EXPECT_EQ(result.out,
            "action default flags 0 mask 0\n"
            "action default flags 0 mask 0\n");
  expect_taken(result, 1);
}

TEST_P(SignalTest, ErrnoDescriptorsAndMaskStay) {
  const Result result = run(signals("conduct"));
  const Words lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 8u) << result.out;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(lines[1 + 2 * i], "errno 42");
    EXPECT_EQ(lines[2 + 2 * i], lines[0]);
  }
  EXPECT_EQ(lines[7], "mask 0 0");
  expect_taken(result, 3);
}

TEST_P(SignalTest, ProgramsHandlerOrIgnoringWins) {
  for (const char* mode : {"signal", "sigaction", "ignore", "raw"}) {
    SCOPED_TRACE(mode);
    const Result result = run(signals(mode));
    expect_taken(result, 0);
    EXPECT_EQ(result.out, run(plain(signals(mode).argv)).out);
  }
}

// Inherited over exec, as nohup does with SIGHUP.
TEST_P(SignalTest, InheritedIgnoringWins) {
  Command command = signals("query");
  command.before_exec = [] { signal(GetParam(), SIG_IGN); };
  const Result result = run(command);
  EXPECT_TRUE(result.out.starts_with("action ignore ")) << result.out;
  expect_taken(result, 0);
}

// Sent three times while the default is ours, and once to the program's own handler.
TEST_P(SignalTest, ResetToTheDefaultIsNotFatal) {
  const Result result = run(signals("reset"));
  EXPECT_EQ(result.out, "ran 1\n");
  expect_taken(result, 3);
}

TEST_P(SignalTest, SmallAlternateStack) {
  const Result result = run(signals("altstack"));
  EXPECT_EQ(result.out, "survived\n");
  expect_taken(result, 1);
}

// With another signal, or none, it does what it does without the library.
TEST_P(SignalTest, NoSignal) {
  const char* const option = toggles() ? "MTRACE_TOGGLE_SIGNAL" : "MTRACE_SIGNAL";
  for (const char* name : {"none", "PROF"}) {
    Command command = signals("conduct");
    command.env[option] = name;
    EXPECT_EQ(run(command).how(), "signal " + std::to_string(GetParam()));
    EXPECT_EQ(all_logs().size(), 0u);
  }
}

TEST_F(TriggerTest, BadOptionsAreNamedOnceAndTheDefaultHolds) {
  const Result result =
      expect_exit(run(signals("query", {{"MTRACE_SIGNAL", "USR3"}, {"MTRACE_DEPTH", "0"}})));
  EXPECT_EQ(result.err,
            "mtrace: MTRACE_DEPTH=0 is not a number from 1 to 256; using 256\n"
            "mtrace: MTRACE_SIGNAL=USR3 is not a signal that can be caught; using USR1\n");
  EXPECT_HAS(logs_of(result.pid, 2)[0].get("library"), "MTRACE_DEPTH=256");
}

TEST_F(TriggerTest, WithoutTheCommand) {
  const std::vector<Memlog> logs = reports_of(signals("query", {{"MTRACE_COMMAND", "0"}}), 2);
  for (const Memlog& log : logs) EXPECT_FALSE(log.has("command"));
}

TEST_F(TriggerTest, Api) {
  const Result result = expect_exit(run(traced({program("api"), std::string(1000, 'L')})));
  EXPECT_EQ(result.out, "report 1\nlabel 2\nnull label 3\nhostile label 4\nlong label 5\n");
  const std::vector<Memlog> logs = logs_of(result.pid, 6);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(logs[i].get("trigger"), "api");
  EXPECT_FALSE(logs[0].has("label"));
  EXPECT_EQ(logs[1].get("label"), "after the second site");
  EXPECT_FALSE(logs[2].has("label"));
  EXPECT_EQ(logs[3].get("label"), "a\\x0a# end\\x0a+1\\x09blocks=+1\\\\\\x01\\xff");
  EXPECT_TRUE(logs[4].get("label").starts_with("LLLLLLLLLL"));
  EXPECT_FALSE(logs[5].has("label"));
  const std::string path = program("api");
  EXPECT_EQ(site_sums({logs[0]}, path, path), (Sites{{"site_first", {111, 1}}}));
  EXPECT_EQ(site_sums({logs[1]}, path, path), (Sites{{"site_second", {222, 1}}}));
  EXPECT_EQ(site_sums({logs[2]}, path, path), (Sites{{"site_first", {-111, -1}}}));
}

// Many signals from outside: none is fatal, and reports are numbered without a gap.
TEST_F(TriggerTest, ManySignals) {
  Process process(traced({program("idle"), "malloc"}), "ready");
  for (int i = 0; i < 200; ++i) process.send(SIGUSR1);
  wait_for_report("idle", process.pid(), 1);
  process.write("x");
  const Result result = expect_exit(process.wait());
  const std::vector<Memlog> logs = logs_of(result.pid);
  EXPECT_GE(logs.size(), 2u);
  EXPECT_LE(logs.size(), 201u);
  for (size_t i = 0; i < logs.size(); ++i) EXPECT_EQ(logs[i].get("seq"), std::to_string(i + 1));
}

// Between the program's first allocation and the library's constructor: written as soon as there is
// something to write.
TEST_F(TriggerTest, BeforeTheConstructor) {
  Command command = traced({program("idle"), "read"});
  command.env["LD_PRELOAD"] += " " + program("plugin_trigger.so");
  Process process(command);
  EXPECT_EQ(process.read_until("ready"), (Words{"default", "alive"}));
  wait_for_report("idle", process.pid(), 1);
  EXPECT_EQ(read_memlog(report_path("idle", process.pid(), 1)).get("trigger"), "signal");
  process.write("x");
  EXPECT_HAS(expect_exit(process.wait()).out, "interrupted 0\n");
}

}  // namespace
}  // namespace mtrace::test
