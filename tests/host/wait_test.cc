// Waits that find every child say under the library what they say without it, whatever the library
// has running as a child of the program's.
#include "host_test.h"

namespace mtrace::test {
namespace {

struct Way {
  const char* name;
  bool events;
  std::map<std::string, std::string> env;
};

const Way kWays[] = {
    {"events", true, {}},
    {"reports", false, {}},
    {"mappings", false, {{"MTRACE_MMAP", "1"}}},
    {"sampling", false, {{"MTRACE_SAMPLE", "64"}}},
};

class WaitTest : public HostTest {
 protected:
  void SetUp() override {
    // Runs for as long as the program.
    write_script(hangs(), "#!/bin/sh\nexec sleep 100000\n");
  }
  std::string hangs() const { return temp() + "/hangs"; }
  // A program that has a helper from its first report on, or from its start with an event log.
  Command helped(const Way& way, bool subreaper = false) const {
    Command command = named({program("every_child"), std::to_string(way.events ? 0 : SIGUSR1)});
    if (subreaper) command.argv.emplace_back("subreaper");
    command.env.insert(way.env.begin(), way.env.end());
    if (way.events) {
      command.env["MTRACE_EVENTS"] = "1";
    } else {
      command.env["MTRACE_RESOLVER"] = hangs();
      command.env["MTRACE_EXIT_WAIT"] = "0";
    }
    command.input = "\n";
    return command;
  }
  static void expect_as_alone(const Result& result) {
    expect_exit(result);
    EXPECT_EQ(result.out, "ready\ndone\n");
    EXPECT_EQ(result.err, "");
  }
};

TEST_F(WaitTest, Alone) {
  Command command = plain({program("every_child")});
  command.input = "\n";
  expect_as_alone(run(command));
}

TEST_F(WaitTest, WithAHelper) {
  for (const Way& way : kWays) {
    SCOPED_TRACE(way.name);
    expect_as_alone(run(helped(way)));
    expect_as_alone(run(helped(way, true)));
  }
}

TEST_F(WaitTest, AsTheFirstProcess) {
  const Words unshare = {"/usr/bin/unshare", "--mount-proc", "--pid", "--fork"};
  Command attempt = plain(unshare);
  attempt.argv.emplace_back("/bin/true");
  if (run(attempt).status != 0) GTEST_SKIP() << "no namespaces may be made here";
  for (const Way& way : kWays) {
    SCOPED_TRACE(way.name);
    Command command = helped(way);
    Words& argv = command.argv;
    argv.insert(argv.begin(), {"/usr/bin/env", "LD_PRELOAD=" + command.env["LD_PRELOAD"]});
    argv.insert(argv.begin(), unshare.begin(), unshare.end());
    command.env.erase("LD_PRELOAD");
    expect_as_alone(run(command));
  }
}

TEST_F(WaitTest, Attached) {
  for (const bool events : {false, true}) {
    SCOPED_TRACE(events);
    Process process(plain({program("every_child")}), "ready");
    Command attach = tool({"attach", process.id()});
    if (events) attach.argv.insert(attach.argv.end() - 1, "--events");
    attach.env["MTRACE_RESOLVER"] = events ? memlog_tool() : hangs();
    attach.env["MTRACE_EXIT_WAIT"] = "0";
    expect_exit(run(attach));
    process.send(SIGUSR1);
    if (!events) wait_for_report("every_child", process.pid(), 1);
    process.write("\n");
    process.close_input();
    expect_as_alone(process.wait());
  }
}

}  // namespace
}  // namespace mtrace::test
