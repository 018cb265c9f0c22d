// What asks for a report, and what else the host notices of it: nothing.
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <filesystem>

#include "host_test.h"

namespace mtrace::test {
namespace {

class TriggerTest : public HostTest {
 protected:
  // `signals MODE NUMBER` under the library.
  Command signals(const std::string& mode, int number) const {
    return traced({program("signals"), mode, std::to_string(number)});
  }
  // The same program without the library, for its output.
  Command plain_signals(const std::string& mode, int number) const {
    return plain({program("signals"), mode, std::to_string(number)});
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
  Process process(traced({program("idle"), idle.mode}));
  process.read_until("ready");
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
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_EQ(logs.size(), 3u);
  EXPECT_EQ(logs[0].get("trigger"), "signal");
  EXPECT_EQ(logs[1].get("trigger"), "signal");
  EXPECT_EQ(logs[2].get("trigger"), "exit");
  EXPECT_EQ(site_sums({logs[0]}, program("idle"), program("idle")),
            (std::map<std::string, Amount>{{"site_idle", {5000, 1}}}));
  EXPECT_EQ(site_sums(logs, program("idle"), program("idle")),
            (std::map<std::string, Amount>{{"site_idle", {5000, 1}}}));
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
  const Result result = expect_exit(run(signals("conduct", SIGUSR1)));
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_EQ(logs.size(), 4u);
  EXPECT_EQ(site_sums({logs[0]}, program("signals"), program("signals")),
            (std::map<std::string, Amount>{{"site_signals", {4321, 1}}}));
}

TEST_F(TriggerTest, ErrnoDescriptorsAndMaskStay) {
  const Result result = run(signals("conduct", SIGUSR1));
  const std::vector<std::string> lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 8u) << result.out;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(lines[static_cast<size_t>(1 + 2 * i)], "errno 42");
    EXPECT_EQ(lines[static_cast<size_t>(2 + 2 * i)], lines[0]);
  }
  EXPECT_EQ(lines[7], "mask 0 0");
}

TEST_F(TriggerTest, ProgramSeesTheDefaultAction) {
  const Result result = expect_exit(run(signals("query", SIGUSR1)));
  EXPECT_EQ(result.out,
            "action default flags 0 mask 0\n"
            "action default flags 0 mask 0\n");
  EXPECT_EQ(logs_of(result.pid).size(), 2u);
}

TEST_F(TriggerTest, ProgramsHandlerWins) {
  for (const char* mode : {"signal", "sigaction"}) {
    const Result result = run(signals(mode, SIGUSR1));
    EXPECT_TRUE(result.exited(0)) << mode << " " << result.how() << result.err;
    const Result without = run(plain_signals(mode, SIGUSR1));
    EXPECT_EQ(result.out, without.out) << mode;
    const std::vector<Memlog> logs = logs_of(result.pid);
    ASSERT_EQ(logs.size(), 1u) << mode;
    EXPECT_EQ(logs[0].get("trigger"), "exit");
  }
}

TEST_F(TriggerTest, IgnoringItWins) {
  for (const char* mode : {"ignore", "raw"}) {
    const Result result = run(signals(mode, SIGUSR1));
    const Result without = run(plain_signals(mode, SIGUSR1));
    EXPECT_TRUE(result.exited(0)) << mode << " " << result.how();
    EXPECT_EQ(result.out, without.out) << mode;
    EXPECT_EQ(logs_of(result.pid).size(), 1u) << mode;
  }
}

// Inherited over exec, as nohup does with SIGHUP.
TEST_F(TriggerTest, InheritedIgnoringWins) {
  Command command = signals("query", SIGUSR1);
  command.before_exec = [] { signal(SIGUSR1, SIG_IGN); };
  const Result result = expect_exit(run(command));
  EXPECT_TRUE(result.out.starts_with("action ignore ")) << result.out;
  EXPECT_EQ(logs_of(result.pid).size(), 1u);
}

// Three reports and the one at exit; with the program's own handler there is none.
TEST_F(TriggerTest, ResetToTheDefaultIsNotFatal) {
  const Result result = expect_exit(run(signals("reset", SIGUSR1)));
  EXPECT_EQ(result.out, "ran 1\n");
  EXPECT_EQ(logs_of(result.pid).size(), 4u);
}

TEST_F(TriggerTest, BlockedSignalWaits) {
  Process process(signals("blocked", SIGUSR1));
  EXPECT_EQ(process.read_line(), "pending 1");
  EXPECT_FALSE(std::filesystem::exists(report_path("signals", process.pid(), 1)));
  process.write("\n");
  const Result result = expect_exit(process.wait());
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_EQ(logs.size(), 2u);
  EXPECT_EQ(logs[0].get("trigger"), "signal");
}

TEST_F(TriggerTest, SmallAlternateStack) {
  const Result result = expect_exit(run(signals("altstack", SIGUSR1)));
  EXPECT_EQ(result.out, "survived\n");
  EXPECT_EQ(logs_of(result.pid).size(), 2u);
}

TEST_F(TriggerTest, OtherSignals) {
  const std::vector<std::pair<std::string, int>> kSignals = {
      {"USR2", SIGUSR2},
      {"SIGPROF", SIGPROF},
      {"RTMIN+1", SIGRTMIN + 1},
      {"RTMAX", SIGRTMAX},
      {"RTMAX-2", SIGRTMAX - 2},
      {"12", SIGUSR2},
      {std::to_string(SIGRTMIN + 5), SIGRTMIN + 5}};
  for (const auto& [name, number] : kSignals) {
    Command command = signals("query", number);
    command.env["MTRACE_SIGNAL"] = name;
    const Result result = run(command);
    EXPECT_TRUE(result.exited(0)) << name << ": " << result.how();
    EXPECT_EQ(result.err, "") << name;
    EXPECT_EQ(logs_of(result.pid).size(), 2u) << name;
  }
}

// With another signal, or none, SIGUSR1 does what it does without the library.
TEST_F(TriggerTest, NoSignal) {
  for (const char* name : {"none", "USR2"}) {
    Command command = signals("conduct", SIGUSR1);
    command.env["MTRACE_SIGNAL"] = name;
    const Result result = run(command);
    EXPECT_TRUE(WIFSIGNALED(result.status) && WTERMSIG(result.status) == SIGUSR1) << result.how();
    EXPECT_EQ(logs_of(result.pid).size(), 0u);
  }
}

TEST_F(TriggerTest, BadOptionsAreNamedOnceAndTheDefaultHolds) {
  const std::vector<std::pair<std::string, std::string>> kBad = {
      {"MTRACE_SIGNAL", "USR3"},     {"MTRACE_SIGNAL", "KILL"},
      {"MTRACE_SIGNAL", "STOP"},     {"MTRACE_SIGNAL", "0"},
      {"MTRACE_SIGNAL", "65"},       {"MTRACE_SIGNAL", "RTMAX+1"},
      {"MTRACE_DEPTH", "0"},         {"MTRACE_DEPTH", "257"},
      {"MTRACE_DEPTH", "ten"},       {"MTRACE_DEPTH", "10x"},
      {"MTRACE_DEPTH", "-3"},        {"MTRACE_EXIT_REPORT", "2"},
      {"MTRACE_UNWINDER", "frames"}, {"MTRACE_EXIT_WAIT", "-1"},
      {"MTRACE_COMMAND", "yes"},     {"MTRACE_DEPTH", "99999999999999999999"}};
  for (const auto& [name, value] : kBad) {
    Command command = signals("query", SIGUSR1);
    command.env[name] = value;
    const Result result = run(command);
    EXPECT_TRUE(result.exited(0)) << name << "=" << value << ": " << result.how();
    EXPECT_EQ(lines_of(result.err).size(), 1u) << name << "=" << value << ": " << result.err;
    EXPECT_HAS(result.err, name);
    EXPECT_HAS(result.err, value);
    const std::vector<Memlog> logs = logs_of(result.pid);
    ASSERT_EQ(logs.size(), 2u) << name << "=" << value;
    EXPECT_HAS(logs[0].get("library"), "MTRACE_DEPTH=256") << value;
  }
}

// Names of the environment that a program may have for itself are not options.
TEST_F(TriggerTest, GoodOptionsAreSilent) {
  Command command = signals("query", SIGUSR1);
  command.env["MTRACE_DEPTH"] = "128";
  command.env["MTRACE_SIGNAL"] = "SIGUSR1";
  command.env["MTRACE_EXIT_WAIT"] = "0";
  command.env["MTRACE_COMMAND"] = "0";
  const Result result = expect_exit(run(command));
  EXPECT_EQ(result.err, "");
  for (const Memlog& log : logs_of(result.pid)) EXPECT_FALSE(log.has("command"));
}

TEST_F(TriggerTest, Api) {
  const Result result = expect_exit(run(traced({program("api"), std::string(1000, 'L')})));
  EXPECT_EQ(result.out, "report 1\nlabel 2\nnull label 3\nhostile label 4\nlong label 5\n");
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_EQ(logs.size(), 6u);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(logs[i].get("trigger"), "api");
  EXPECT_FALSE(logs[0].has("label"));
  EXPECT_EQ(logs[1].get("label"), "after the second site");
  EXPECT_FALSE(logs[2].has("label"));
  EXPECT_EQ(logs[3].get("label"), "a\\x0a# end\\x0a+1\\x09blocks=+1\\\\\\x01\\xff");
  EXPECT_TRUE(logs[4].get("label").starts_with("LLLLLLLLLL"));
  EXPECT_FALSE(logs[5].has("label"));
  const std::string path = program("api");
  using Sites = std::map<std::string, Amount>;
  EXPECT_EQ(site_sums({logs[0]}, path, path), (Sites{{"site_first", {111, 1}}}));
  EXPECT_EQ(site_sums({logs[1]}, path, path), (Sites{{"site_second", {222, 1}}}));
  EXPECT_EQ(site_sums({logs[2]}, path, path), (Sites{{"site_first", {-111, -1}}}));
}

TEST_F(TriggerTest, ApiWithoutTheLibrary) {
  const Result result = expect_exit(run(plain({program("api")})));
  EXPECT_EQ(result.out, "report 0\nlabel 0\nnull label 0\nhostile label 0\n");
}

// Many signals from outside: none is fatal, and reports are numbered without a gap.
TEST_F(TriggerTest, ManySignals) {
  Process process(traced({program("idle"), "malloc"}));
  process.read_until("ready");
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
  EXPECT_EQ(process.read_until("ready"), (std::vector<std::string>{"default", "alive"}));
  wait_for_report("idle", process.pid(), 1);
  EXPECT_EQ(read_memlog(report_path("idle", process.pid(), 1)).get("trigger"), "signal");
  process.write("x");
  const Result result = expect_exit(process.wait());
  EXPECT_HAS(result.out, "interrupted 0\n");
}

}  // namespace
}  // namespace mtrace::test
