// memlog attach and detach: what is counted, that the program notices nothing, and where memlog has
// to wait or to refuse.
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "host_test.h"

namespace mtrace::test {
namespace {

class AttachTest : public HostTest {
 protected:
  Result memlog(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), memlog_tool());
    Command command = plain(arguments);
    command.directory = out();
    command.env["MTRACE_RESOLVER"] = "none";
    return run(command);
  }
  Result attach(pid_t pid) const { return memlog({"attach", std::to_string(pid)}); }
  Result detach(pid_t pid) const { return memlog({"detach", std::to_string(pid)}); }
  Result report(pid_t pid) const { return memlog({"report", std::to_string(pid)}); }

  void expect_good(const Result& result) const {
    EXPECT_TRUE(result.exited(0)) << result.how() << " " << result.err;
    EXPECT_EQ(result.err, "");
  }
  void expect_refused(const Result& result, const std::string& why) const {
    EXPECT_TRUE(result.exited(1)) << result.how();
    EXPECT_NE(result.err.find(why), std::string::npos) << result.err;
    EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
  }
};

TEST_F(AttachTest, CountsWhatComesAfterwards) {
  Process process(plain({program("attached"), "sites"}));
  process.read_until("ready");
  process.write("aanp");
  process.read_until("told");
  expect_good(attach(process.pid()));
  process.write("aaannffrp");
  const std::vector<std::string> lines = process.read_until("told");
  expect_good(report(process.pid()));
  const std::vector<Memlog> logs = logs_of(process.pid());
  ASSERT_EQ(logs.size(), 1u);
  std::string told;
  for (const std::string& line : lines) told += line + '\n';
  // What its sites hold, without the two blocks from before.
  std::map<std::string, Amount> expected = told_sites(told)[1];
  expected["site_attached"] += {-2 * 321, -2};
  expected["site_new"] += {-123, -1};
  const std::string file = program("attached");
  EXPECT_EQ(describe(site_sums(logs, file, file)), describe(expected));
  EXPECT_EQ(logs[0].number("unknown-frees"), 3);
  process.close_input();
  const Result result = process.wait();
  EXPECT_TRUE(result.exited(0)) << result.how() << result.out;
  EXPECT_EQ(logs_of(process.pid()).back().get("trigger"), "exit");
}

// Also attached and detached several times, and once it is detached the signal ends it again.
TEST_F(AttachTest, DetachedItIsAsBefore) {
  Process process(plain({program("attached"), "sites"}));
  process.read_until("ready");
  for (int round = 0; round < 5; ++round) {
    expect_good(attach(process.pid()));
    EXPECT_NE(attach(process.pid()).out.find("attached already"), std::string::npos);
    process.write("ap");
    process.read_until("told");
    expect_good(report(process.pid()));
    expect_good(detach(process.pid()));
    EXPECT_NE(detach(process.pid()).out.find("detached already"), std::string::npos);
    process.write("ap");
    process.read_until("told");
    EXPECT_TRUE(report(process.pid()).exited(1));
  }
  // Each round is a series of its own, and counts what it has seen.
  const auto all = all_logs();
  EXPECT_EQ(all.size(), 5u);
  for (const auto& [name, logs] : all) {
    ASSERT_EQ(logs.size(), 1u) << name;
    const std::string file = program("attached");
    const auto sums = site_sums(logs, file, file);
    ASSERT_EQ(sums.size(), 1u) << name << describe(sums);
    EXPECT_EQ(sums.begin()->second, (Amount{321, 1})) << name;
  }
  process.send(SIGUSR1);
  const Result result = process.wait();
  EXPECT_TRUE(WIFSIGNALED(result.status) && WTERMSIG(result.status) == SIGUSR1) << result.how();
}

// Each call goes on as if nothing had been.
TEST_F(AttachTest, WaitingCallsGoOn) {
  Process process(plain({program("attached"), "waiting"}));
  process.read_until("ready");
  wait_until_blocked(process.pid(), SYS_read);
  for (int round = 0; round < 3; ++round) {
    expect_good(attach(process.pid()));
    expect_good(detach(process.pid()));
  }
  process.close_input();
  const Result result = process.wait();
  EXPECT_TRUE(result.exited(0)) << result.how();
  std::vector<std::string> lines = lines_of(result.out);
  lines.erase(lines.begin());
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines, (std::vector<std::string>{"condition 0 ", "epoll_wait 1 ", "nanosleep 0 ",
                                             "poll 1 ", "read 0 ", "sem_wait 0 "}))
      << result.out;
}

TEST_F(AttachTest, InSignalHandlers) {
  Process process(plain({program("attached"), "handler"}));
  process.read_until("ready");
  expect_good(attach(process.pid()));
  expect_good(report(process.pid()));
  expect_good(detach(process.pid()));
  process.close_input();
  const Result result = process.wait();
  EXPECT_TRUE(result.exited(0)) << result.how();
  EXPECT_EQ(lines_of(result.out).back(), "handled");
}

TEST_F(AttachTest, NotInsideTheLoader) {
  Process process(plain({program("attached"), "loading", program("plugin_slow.so")}));
  process.read_until("ready");
  const Result refused = memlog({"attach", "--timeout", "1", std::to_string(process.pid())});
  expect_refused(refused, "is inside ld-linux-x86-64.so.2");
  process.write("x");
  process.read_until("loaded");
  expect_good(attach(process.pid()));
  process.close_input();
  EXPECT_TRUE(process.wait().exited(0));
}

TEST_F(AttachTest, NotDuringVfork) {
  Process process(plain({program("attached"), "vfork"}));
  process.read_until("ready");
  const std::string children = "/proc/" + std::to_string(process.pid()) + "/task/" +
                               std::to_string(process.pid()) + "/children";
  wait_until("the child", [&] { return !read_file(children).empty(); });
  const Result refused = memlog({"attach", "--timeout", "1", std::to_string(process.pid())});
  expect_refused(refused, "did not come to a safe point");
  process.write("x");
  process.read_until("child 5");
  expect_good(attach(process.pid()));
  process.close_input();
  EXPECT_TRUE(process.wait().exited(0));
}

TEST_F(AttachTest, BusyThreads) {
  Process process(plain({program("attached"), "busy"}));
  process.read_until("ready");
  for (int round = 0; round < 10; ++round) {
    expect_good(attach(process.pid()));
    if (round % 3 == 0) expect_good(report(process.pid()));
    expect_good(detach(process.pid()));
  }
  process.close_input();
  const Result result = process.wait();
  EXPECT_TRUE(result.exited(0)) << result.how() << result.out;
  EXPECT_EQ(lines_of(result.out).back(), "done");
}

// A stopped process stays stopped, and is attached to.
TEST_F(AttachTest, StoppedProcess) {
  Process process(plain({program("attached"), "sites"}));
  process.read_until("ready");
  process.send(SIGSTOP);
  wait_until("the stop", [&] { return process_state(process.pid()) == 'T'; });
  expect_good(attach(process.pid()));
  EXPECT_EQ(process_state(process.pid()), 'T');
  process.send(SIGCONT);
  process.write("ap");
  process.read_until("told");
  expect_good(report(process.pid()));
  EXPECT_EQ(logs_of(process.pid()).size(), 1u);
  process.close_input();
  EXPECT_TRUE(process.wait().exited(0));
}

// memlog is killed at moments all over the attach: the program lives, and can be attached to.
TEST_F(AttachTest, MemlogKilledMeanwhile) {
  Process process(plain({program("attached"), "waiting"}));
  process.read_until("ready");
  for (int round = 0; round < 40; ++round) {
    Command command =
        plain({memlog_tool(), round % 2 == 0 ? "attach" : "detach", std::to_string(process.pid())});
    command.directory = out();
    Process tool(command);
    usleep(static_cast<useconds_t>(round * 700));  // not to wait for anything: another moment each
    tool.send(SIGKILL);
    tool.wait();
    ASSERT_NE(process_state(process.pid()), 'Z') << round;
  }
  attach(process.pid());
  expect_good(detach(process.pid()));
  process.close_input();
  const Result result = process.wait();
  EXPECT_TRUE(result.exited(0)) << result.how() << result.err;
}

TEST_F(AttachTest, Refusals) {
  Process process(plain({program("attached"), "sites"}));
  process.read_until("ready");
  expect_refused(memlog({"attach", "999999999"}), "no process 999999999");
  expect_refused(memlog({"attach", "2"}), "is part of the kernel");
  expect_refused(detach(process.pid()), "is not attached to");
  Process preloaded(traced({program("idle"), "read"}));
  preloaded.read_until("ready");
  expect_refused(attach(preloaded.pid()), "has libmtrace.so preloaded");
  expect_refused(detach(preloaded.pid()), "has libmtrace.so preloaded");
  preloaded.write("x");
  EXPECT_TRUE(preloaded.wait().exited(0));
  process.close_input();
  EXPECT_TRUE(process.wait().exited(0));
}

}  // namespace
}  // namespace mtrace::test
