// MTRACE_TOGGLE_SIGNAL, MTRACE_START and mtrace_start(): what is recorded when, and what the
// program sees of the signal.
#include "host_test.h"

namespace mtrace::test {
namespace {

class ToggleTest : public HostTest {
 protected:
  Command toggles(const std::string& part, Settings settings = {}) const {
    settings.emplace("MTRACE_TOGGLE_SIGNAL", "USR2");
    return traced({program("toggles"), part}, settings);
  }
  // programs/signals.c with a signal that is not the one for reports.
  Command query(const Settings& settings) const {
    Command command = toggles("", settings);
    command.argv = {program("signals"), "query", std::to_string(SIGUSR2)};
    return command;
  }
  static Sites sites(const std::vector<Memlog>& logs) {
    return site_sums(logs, program("toggles"), program("toggles"));
  }
};

TEST_F(ToggleTest, StopsAndGoesOn) {
  const Result result = expect_exit(run(toggles("phases")));
  EXPECT_EQ(result.err, "");
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_EQ(logs.size(), 1u) << "a toggle writes no report";
  EXPECT_EQ(sites(logs), (Sites{{"site_before", {1001, 1}}, {"site_seen", {3000, 1}}}));
  EXPECT_FALSE(logs[0].has("recording"));
  EXPECT_EQ(logs[0].number("unknown-frees"), 1);
}

TEST_F(ToggleTest, StartedStopped) {
  const std::vector<Memlog> logs = reports_of(toggles("phases", {{"MTRACE_START", "0"}}), 1);
  // The first toggle starts it, the second stops it.
  EXPECT_EQ(logs[0].get("recording"), "stopped");
  EXPECT_EQ(sites(logs), Sites{});
  EXPECT_EQ(logs[0].get("allocated"), "2000 bytes 1 blocks");
}

TEST_F(ToggleTest, ChildOfAFork) {
  const Result result = expect_exit(run(toggles("fork")));
  const pid_t child = std::stoi(result.out.substr(6));
  const std::vector<Memlog> parent = logs_of(result.pid, 1);
  EXPECT_EQ(parent[0].get("recording"), "stopped");
  EXPECT_EQ(sites(parent), (Sites{{"site_before", {2001, 2}}}));
  const std::vector<Memlog> logs = logs_of(child, 1);
  EXPECT_FALSE(logs[0].has("recording"));
  EXPECT_EQ(sites(logs), (Sites{{"site_before", {-1000, -1}}, {"site_child", {4000, 1}}}));
}

TEST_F(ToggleTest, ProgramAfterExec) {
  for (const char* start : {"1", "0"}) {
    const std::vector<Memlog> logs = reports_of(toggles("exec", {{"MTRACE_START", start}}), 1);
    const Sites seen = {{"site_before", {1001, 1}}, {"site_seen", {3000, 1}}};
    EXPECT_EQ(sites(logs), start[0] == '1' ? seen : Sites{});
  }
}

// What is live is what the blocks say: nothing is left of what the threads had.
TEST_F(ToggleTest, WhileThreadsAllocate) {
  const std::vector<Memlog> logs =
      reports_of(toggles("threads", {{"MTRACE_ENTRIES", "active"}}), 6);
  EXPECT_EQ(sites(logs), (Sites{{"site_seen", {3000, 1}}}));
  EXPECT_GT(logs.back().number("unknown-frees"), 100);
  EXPECT_EQ(logs.back().get("lost"), "frames=0 stacks=0 blocks=0 inflight=0");
  const Symbols symbols(program("toggles"));
  int64_t seen = 0;
  for (const Memlog& log : logs) {
    for (const Entry& entry : log.entries) {
      if (!entry.counts.contains("allocs")) continue;
      if (symbols.at(entry.frames.at(0).offset) == "site_thread") seen += entry.count("allocs");
    }
  }
  EXPECT_GT(seen, 100);
}

TEST_F(ToggleTest, StartedByTheProgram) {
  const Result result =
      expect_exit(run(traced({program("toggles"), "calls"}, {{"MTRACE_START", "0"}})));
  EXPECT_EQ(result.out, "start 0\nstart 1\nlive 3000\nstop 1\nlive 3000\n");
  const std::vector<Memlog> logs = logs_of(result.pid, 1);
  EXPECT_EQ(sites(logs), (Sites{{"site_seen", {3000, 1}}}));
  EXPECT_EQ(logs[0].get("live"), "3000 bytes 1 blocks");
  EXPECT_EQ(logs[0].get("recording"), "stopped");
}

TEST_F(ToggleTest, NoSignalForReports) {
  EXPECT_EQ(reports_of(query({{"MTRACE_SIGNAL", "none"}}), 1)[0].get("recording"), "stopped");
}

TEST_F(ToggleTest, ProgramsNotFollowedSwallowIt) {
  EXPECT_EQ(expect_exit(run(query({{"MTRACE_FOLLOW", "another"}}))).out,
            "action default flags 0 mask 0\n"
            "action default flags 0 mask 0\n");
  EXPECT_EQ(all_logs().size(), 0u);
}

}  // namespace
}  // namespace mtrace::test
