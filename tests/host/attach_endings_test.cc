// Programs that end, or begin another program, while memlog holds them: nobody has to wait for
// memlog's time-out, and memlog says what happened.
#include "host_test.h"
#include "stepped_tool.h"

namespace mtrace::test {
namespace {

class AttachEndingsTest : public HostTest {
 protected:
  static void expect_told(const Result& result) {
    expect_exit(result, 1);
    EXPECT_HAS(result.err, "has ended meanwhile");
  }
};

// memlog stops and looks at its threads again and again, because one is in the loader.
TEST_F(AttachEndingsTest, WhileItsThreadsAreStopped) {
  for (int round = 0; round < 4; ++round) {
    // The allocator is there for one thread more.
    Ready process(plain({program("attached"), "loading", program("plugin_slow.so")},
                        {{"LD_PRELOAD", program("plugin_slow_allocator.so")}}));
    int calls = 0;
    expect_told(
        run_stepwise(tool({"attach", "--timeout", "20", process.id()}), [&](const ToolCall& call) {
          calls += !call.made && call.number == SYS_ptrace;
          if (calls == 1 + round * 5) process.send(SIGKILL);
          return true;
        }));
    EXPECT_EQ(process.wait().how(), "signal 9");
  }
}

TEST_F(AttachEndingsTest, WhileAThreadMakesACall) {
  Ready process(
      plain({program("attached"), "sites"}, {{"LD_PRELOAD", program("plugin_slow_allocator.so")}}));
  process.say("n", "slow");
  Process attaching(tool({"attach", "--timeout", "20", process.id()}));
  process.read_until("inside");  // dlopen asks for memory
  process.send(SIGKILL);
  EXPECT_EQ(process.wait().how(), "signal 9");
  expect_told(attaching.wait());
}

// An exec waits for the end of all other threads, and those for memlog.
TEST_F(AttachEndingsTest, WhileItExecutesItselfAgain) {
  Process process(plain({program("exec_storm"), "250"}));
  const std::string files = "/proc/" + process.id();
  const std::string last = "exec_storm" + std::string(1, '\0') + '0';
  const auto attach = [&] { return run(tool({"attach", process.id()})); };
  while (read_file(files + "/cmdline").find(last) == std::string::npos) {
    const Result result = attach();
    EXPECT_TRUE(result.exited(0) || result.exited(1)) << result.how() << result.err;
    EXPECT_LACKS(result.err, "in time");
  }
  // Whatever came of that, the last of the programs is traced, or can be.
  if (read_file(files + "/maps").find("libmtrace.so") == std::string::npos) {
    expect_exit(attach());
  }
  EXPECT_HAS(read_file(files + "/maps"), "libmtrace.so");
  const std::string prefix = "exec_storm-" + process.id() + ".";
  expect_exit(process.wait(), 7);
  // A raw exec leaves a ledger to recover from, as a kill does.
  for (const std::string& name : names_in("/dev/shm", ".ledger")) {
    if (name.starts_with(prefix)) fs::remove("/dev/shm/" + name);
  }
}

}  // namespace
}  // namespace mtrace::test
