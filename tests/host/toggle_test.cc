// MTRACE_TOGGLE_SIGNAL, MTRACE_START and mtrace_start(): what is recorded when, and what the
// program sees of the signal.
#include <signal.h>

#include "host_test.h"

namespace mtrace::test {
namespace {

using Sites = std::map<std::string, Amount>;

class ToggleTest : public HostTest {
 protected:
  Command toggles(const std::string& part) const {
    Command command = traced({program("toggles"), part});
    command.env["MTRACE_TOGGLE_SIGNAL"] = "USR2";
    return command;
  }
  // programs/signals.c with a signal that is not the one for reports.
  Command signals(const std::string& mode) const {
    Command command = traced({program("signals"), mode, std::to_string(SIGUSR2)});
    command.env["MTRACE_TOGGLE_SIGNAL"] = "USR2";
    return command;
  }
  Command plain_signals(const std::string& mode) const {
    return plain({program("signals"), mode, std::to_string(SIGUSR2)});
  }
  static Sites sites(const std::vector<Memlog>& logs) {
    return site_sums(logs, program("toggles"), program("toggles"));
  }
  static int64_t unknown_frees(const Memlog& log) {
    return std::stoll("0" + log.get("unknown-frees"));
  }
};

TEST_F(ToggleTest, StopsAndGoesOn) {
  const Result result = expect_exit(run(toggles("phases")));
  EXPECT_EQ(result.err, "");
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_EQ(logs.size(), 1u) << "a toggle writes no report";
  EXPECT_EQ(sites(logs), (Sites{{"site_before", {1001, 1}}, {"site_seen", {3000, 1}}}));
  EXPECT_FALSE(logs[0].has("recording"));
  EXPECT_EQ(unknown_frees(logs[0]), 1);
}

TEST_F(ToggleTest, StartedStopped) {
  Command command = toggles("phases");
  command.env["MTRACE_START"] = "0";
  const Result result = expect_exit(run(command));
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_EQ(logs.size(), 1u);
  // The first toggle starts it, the second stops it.
  EXPECT_EQ(logs[0].get("recording"), "stopped");
  EXPECT_EQ(sites(logs), Sites{});
  EXPECT_EQ(logs[0].get("allocated"), "2000 bytes 1 blocks");
}

TEST_F(ToggleTest, ChildOfAFork) {
  const Result result = expect_exit(run(toggles("fork")));
  const pid_t child = std::stoi(result.out.substr(6));
  const std::vector<Memlog> parent = logs_of(result.pid);
  ASSERT_EQ(parent.size(), 1u);
  EXPECT_EQ(parent[0].get("recording"), "stopped");
  EXPECT_EQ(sites(parent), (Sites{{"site_before", {2001, 2}}}));
  const std::vector<Memlog> logs = logs_of(child);
  ASSERT_EQ(logs.size(), 1u);
  EXPECT_FALSE(logs[0].has("recording"));
  EXPECT_EQ(sites(logs), (Sites{{"site_before", {-1000, -1}}, {"site_child", {4000, 1}}}));
}

TEST_F(ToggleTest, ProgramAfterExec) {
  for (const char* start : {"1", "0"}) {
    Command command = toggles("exec");
    command.env["MTRACE_START"] = start;
    const Result result = expect_exit(run(command));
    const std::vector<Memlog> logs = logs_of(result.pid);
    ASSERT_EQ(logs.size(), 1u);
    const Sites seen = {{"site_before", {1001, 1}}, {"site_seen", {3000, 1}}};
    EXPECT_EQ(sites(logs), start[0] == '1' ? seen : Sites{});
  }
}

// What is live is what the blocks say: nothing is left of what the threads had.
TEST_F(ToggleTest, WhileThreadsAllocate) {
  Command command = toggles("threads");
  command.env["MTRACE_ENTRIES"] = "active";
  const Result result = expect_exit(run(command));
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_EQ(logs.size(), 6u);
  EXPECT_EQ(sites(logs), (Sites{{"site_seen", {3000, 1}}}));
  EXPECT_GT(unknown_frees(logs.back()), 100);
  EXPECT_EQ(logs.back().get("lost"), "frames=0 stacks=0 blocks=0 inflight=0");
  const Symbols symbols(program("toggles"));
  int64_t seen = 0;
  for (const Memlog& log : logs) {
    for (const Entry& entry : log.entries) {
      const auto count = entry.counts.find("allocs");
      if (count != entry.counts.end() && symbols.at(entry.frames.at(0).offset) == "site_thread") {
        seen += count->second;
      }
    }
  }
  EXPECT_GT(seen, 100);
}

TEST_F(ToggleTest, StartedByTheProgram) {
  Command command = traced({program("toggles"), "calls"});
  command.env["MTRACE_START"] = "0";
  const Result result = expect_exit(run(command));
  EXPECT_EQ(result.out, "start 0\nstart 1\nlive 3000\nstop 1\nlive 3000\n");
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_EQ(logs.size(), 1u);
  EXPECT_EQ(sites(logs), (Sites{{"site_seen", {3000, 1}}}));
  EXPECT_EQ(logs[0].get("live"), "3000 bytes 1 blocks");
  EXPECT_EQ(logs[0].get("recording"), "stopped");
}

TEST_F(ToggleTest, ProgramSeesTheDefaultAction) {
  const Result result = expect_exit(run(signals("query")));
  EXPECT_EQ(result.out,
            "action default flags 0 mask 0\n"
            "action default flags 0 mask 0\n");
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_EQ(logs.size(), 1u);
  EXPECT_EQ(logs[0].get("recording"), "stopped");
  EXPECT_FALSE(logs[0].has("note"));
}

TEST_F(ToggleTest, ErrnoDescriptorsAndMaskStay) {
  const Result result = run(signals("conduct"));
  const std::vector<std::string> lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 8u) << result.out;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(lines[1 + 2 * i], "errno 42");
    EXPECT_EQ(lines[2 + 2 * i], lines[0]);
  }
  EXPECT_EQ(lines[7], "mask 0 0");
  EXPECT_EQ(logs_of(result.pid).at(0).get("recording"), "stopped") << "toggled three times";
}

// A handler of its own, or ignoring, wins; the signal for reports works as ever.
TEST_F(ToggleTest, ProgramsHandlerWins) {
  for (const char* mode : {"signal", "sigaction", "ignore", "raw"}) {
    const Result result = run(signals(mode));
    EXPECT_TRUE(result.exited(0)) << mode << " " << result.how() << result.err;
    EXPECT_EQ(result.out, run(plain_signals(mode)).out) << mode;
    const std::vector<Memlog> logs = logs_of(result.pid);
    ASSERT_EQ(logs.size(), 1u) << mode;
    EXPECT_FALSE(logs[0].has("recording")) << mode;
    EXPECT_FALSE(logs[0].has("note")) << mode << ": that is about the signal for reports";
  }
}

TEST_F(ToggleTest, InheritedIgnoringWins) {
  Command command = signals("query");
  command.before_exec = [] { signal(SIGUSR2, SIG_IGN); };
  const Result result = expect_exit(run(command));
  EXPECT_TRUE(result.out.starts_with("action ignore ")) << result.out;
  EXPECT_FALSE(logs_of(result.pid).at(0).has("recording"));
}

// Sent three times while the default is ours, and once to the program's own handler.
TEST_F(ToggleTest, ResetToTheDefaultLeavesOurs) {
  const Result result = expect_exit(run(signals("reset")));
  EXPECT_EQ(result.out, "ran 1\n");
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_EQ(logs.size(), 1u);
  EXPECT_EQ(logs[0].get("recording"), "stopped");
}

TEST_F(ToggleTest, SmallAlternateStack) {
  const Result result = expect_exit(run(signals("altstack")));
  EXPECT_EQ(result.out, "survived\n");
}

TEST_F(ToggleTest, ReportsWinWhereBothAreOneSignal) {
  Command command = traced({program("signals"), "query", std::to_string(SIGUSR1)});
  command.env["MTRACE_TOGGLE_SIGNAL"] = "USR1";
  const Result result = expect_exit(run(command));
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_EQ(logs.size(), 2u);
  EXPECT_EQ(logs[0].get("trigger"), "signal");
  for (const Memlog& log : logs) EXPECT_FALSE(log.has("recording"));
}

TEST_F(ToggleTest, OneSignalForBothIsNamed) {
  Command command = traced({program("toggles"), "calls"});
  const std::string number = std::to_string(SIGRTMIN + 2);
  command.env["MTRACE_SIGNAL"] = "RTMIN+2";
  command.env["MTRACE_TOGGLE_SIGNAL"] = number;
  const Result result = expect_exit(run(command));
  EXPECT_EQ(result.err, "mtrace: MTRACE_TOGGLE_SIGNAL=" + number +
                            " is the signal that writes reports; using none\n");
  // None for both is no conflict.
  command.env["MTRACE_SIGNAL"] = "none";
  command.env["MTRACE_TOGGLE_SIGNAL"] = "none";
  EXPECT_EQ(run(command).err, "");
}

TEST_F(ToggleTest, NoSignalForReports) {
  Command command = signals("query");
  command.env["MTRACE_SIGNAL"] = "none";
  const Result result = expect_exit(run(command));
  EXPECT_EQ(logs_of(result.pid).at(0).get("recording"), "stopped");
}

TEST_F(ToggleTest, ProgramsNotFollowedSwallowIt) {
  Command command = signals("query");
  command.env["MTRACE_FOLLOW"] = "another";
  const Result result = expect_exit(run(command));
  EXPECT_EQ(result.out,
            "action default flags 0 mask 0\n"
            "action default flags 0 mask 0\n");
  EXPECT_EQ(all_logs().size(), 0u);
}

TEST_F(ToggleTest, WithoutTheOptionTheSignalIsTheProgramsAlone) {
  Command command = signals("query");
  command.env.erase("MTRACE_TOGGLE_SIGNAL");
  const Result result = run(command);
  EXPECT_TRUE(WIFSIGNALED(result.status) && WTERMSIG(result.status) == SIGUSR2) << result.how();
}

TEST_F(ToggleTest, BadValues) {
  const std::vector<std::pair<std::string, std::string>> kBad = {
      {"MTRACE_TOGGLE_SIGNAL", "USR3"},
      {"MTRACE_TOGGLE_SIGNAL", "KILL"},
      {"MTRACE_TOGGLE_SIGNAL", "CHLD"},
      {"MTRACE_TOGGLE_SIGNAL", "-1"},
      {"MTRACE_START", "2"},
      {"MTRACE_START", "no"},
      {"MTRACE_TEMPORARY_MS", "-1"},
      {"MTRACE_TEMPORARY_MS", "86400001"},
      {"MTRACE_TEMPORARY_MS", "10ms"},
      {"MTRACE_TEMPORARY_MS", "0x10"},
      {"MTRACE_TEMPORARY_MS", "1.5"},
      {"MTRACE_TEMPORARY_MS", " 1"},
      {"MTRACE_TEMPORARY_MS", "4294967396"},
      {"MTRACE_TEMPORARY_MS", "99999999999999999999"}};
  for (const auto& [name, value] : kBad) {
    Command command = traced({program("toggles"), "calls"});
    command.env[name] = value;
    const Result result = run(command);
    EXPECT_TRUE(result.exited(0)) << name << "=" << value << ": " << result.how();
    ASSERT_EQ(lines_of(result.err).size(), 1u) << name << "=" << value << ": " << result.err;
    EXPECT_TRUE(result.err.starts_with("mtrace: " + name + "=" + value + " is not a "))
        << result.err;
    // The default holds, and stands in no report.
    const std::string used = name == "MTRACE_TEMPORARY_MS" ? "100"
                             : name == "MTRACE_START"      ? "1"
                                                           : "none";
    EXPECT_TRUE(result.err.ends_with("; using " + used + "\n")) << result.err;
    const std::vector<Memlog> logs = logs_of(result.pid);
    ASSERT_EQ(logs.size(), 1u);
    EXPECT_LACKS(logs[0].get("library"), name);
    EXPECT_TRUE(result.out.starts_with("start 1\n")) << result.out;
  }
}

}  // namespace
}  // namespace mtrace::test
