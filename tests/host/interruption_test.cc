// SIGINT and SIGTERM while memlog is in the middle of something: it ends by the signal, and the
// program goes on.
#include <fmt/format.h>

#include <fstream>

#include "host_test.h"
#include "local_server.h"

namespace mtrace::test {
namespace {

class InterruptionTest : public HostTest {
 protected:
  static constexpr const char* kNodes = "1500000";  // whose list takes seconds to follow

  static std::string signalled(int signal) { return fmt::format("signal {}", signal); }
  static pid_t tracer_of(pid_t pid) {
    std::ifstream file(fmt::format("/proc/{}/status", pid));
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("TracerPid:")) return std::stoi(line.substr(10));
    }
    return -1;
  }
  // Stops memlog while it looks at a copy of the program.
  static void stop_in_search(pid_t pid, pid_t memlog) {
    const auto searches = [&] {
      const std::vector<pid_t> copies = children_of(pid);
      return !copies.empty() && tracer_of(copies[0]) == memlog;
    };
    wait_until("a copy of the program", [&] {
      if (!searches()) return false;
      ::kill(memlog, SIGSTOP);
      wait_until("memlog to stop", [&] { return process_state(memlog) == 'T'; });
      if (searches()) return true;
      ::kill(memlog, SIGCONT);
      return false;
    });
  }
  // memlog run --unreachable, in the middle of its search.
  Result interrupt_run(int signal, Words more) {
    Process memlog(plain(joined({memlog_tool(), "run", "--unreachable", "-o", temp(), "--",
                                 program("long_list"), kNodes},
                                more)),
                   "ready");
    const std::vector<pid_t> programs = children_of(memlog.pid());
    EXPECT_EQ(programs.size(), 1u);
    memlog.write("\n");
    stop_in_search(programs.at(0), memlog.pid());
    memlog.send(signal);
    memlog.send(SIGCONT);
    return memlog.wait();
  }
};

// Also where the program ignores the signal: it ends as it would.
TEST_F(InterruptionTest, ASearchAtExitGivesWayToTheProgram) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const Result result = interrupt_run(signal, {});
    EXPECT_EQ(result.how(), signalled(signal)) << result.err;
    EXPECT_HAS(result.err, "not searched for lost blocks");
    const Result ignored = interrupt_run(signal, {"ignore"});
    EXPECT_EQ(ignored.how(), "exit 7") << ignored.err;
    EXPECT_HAS(ignored.err, "a signal has interrupted memlog");
  }
}

TEST_F(InterruptionTest, ASearchLeavesNoCopyBehind) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Process host(traced({program("long_list"), kNodes}, {{"MTRACE_LEDGER", temp() + "/"}}),
                 "ready");
    wait_until_blocked(host.pid(), SYS_read);
    Process memlog(plain({memlog_tool(), "unreachable", host.id()}));
    stop_in_search(host.pid(), memlog.pid());
    memlog.send(signal);
    memlog.send(SIGCONT);
    EXPECT_EQ(memlog.wait().how(), signalled(signal));
    EXPECT_TRUE(children_of(host.pid()).empty());
    EXPECT_EQ(tracer_of(host.pid()), 0);
    host.write("\n");
    EXPECT_EQ(host.wait().how(), "exit 7");
  }
}

// Its thread does not stop, and memlog waits for it.
TEST_F(InterruptionTest, AProcessThatDoesNotStopIsLetGo) {
  for (const Words& words :
       {Words{"attach", "--timeout", "3600"}, {"report", "--timeout", "3600"}}) {
    for (const int signal : {SIGINT, SIGTERM}) {
      const Words argv = {program("vfork_parent")};
      Process host(words[0] == "report" ? traced(argv) : plain(argv), "ready");
      Command command = tool(words);
      command.argv.push_back(host.id());
      Process memlog(command);
      wait_until("memlog to trace it", [&] { return tracer_of(host.pid()) == memlog.pid(); });
      memlog.send(signal);
      EXPECT_EQ(memlog.wait().how(), signalled(signal)) << words[0];
      EXPECT_EQ(tracer_of(host.pid()), 0);
      host.write("\n");
      EXPECT_EQ(host.read_line(), "on");
      expect_exit(host.wait(), 5);
    }
  }
}

TEST_F(InterruptionTest, RegularReportsEnd) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Process host(plain({program("long_list"), "1000"}), "ready");
    wait_until_blocked(host.pid(), SYS_read);
    const std::string place = fmt::format("{}/{}", temp(), signal);
    Process memlog(plain({memlog_tool(), "attach", "--every", "100ms", "-o", place, host.id()}));
    wait_until("a report", [&] {
      std::error_code error;
      return fs::directory_iterator(place, error) != fs::directory_iterator();
    });
    memlog.send(signal);
    EXPECT_EQ(memlog.wait().how(), "exit 0");
    host.write("\n");
    EXPECT_EQ(host.wait().how(), "exit 7");
  }
}

TEST_F(InterruptionTest, ReadingEnds) {
  const std::string pipe = temp() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int ends = ::open(pipe.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(ends, 0);
  for (const Words& words : {Words{"show", pipe},
                             {"tree", pipe},
                             {"export", "-f", "csv", pipe},
                             {"sql", pipe, "select count(*) from allocations"}}) {
    for (const int signal : {SIGINT, SIGTERM}) {
      Process memlog(tool(words));
      wait_until_blocked(memlog.pid(), SYS_read);
      memlog.send(signal);
      EXPECT_EQ(memlog.wait().how(), signalled(signal)) << words[0];
    }
  }
  ::close(ends);
}

}  // namespace
}  // namespace mtrace::test
