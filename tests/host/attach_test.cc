// memlog attach and detach: what is counted, that the program notices nothing, and where memlog has
// to wait or to refuse.
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <functional>

#include "host_test.h"
#include "local_server.h"
#include "stepped_tool.h"

namespace mtrace::test {
namespace {

class AttachTest : public HostTest {
 protected:
  Result attach(pid_t pid) const { return memlog({"attach", std::to_string(pid)}); }
  Result detach(pid_t pid) const { return memlog({"detach", std::to_string(pid)}); }
  Result report(pid_t pid) const { return memlog({"report", std::to_string(pid)}); }

  void expect_good(const Result& result) const {
    expect_exit(result);
    EXPECT_EQ(result.err, "");
  }
  void expect_refused(const Result& result, const std::string& why) const {
    expect_exit(result, 1);
    EXPECT_HAS(result.err, why);
    EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
  }
  // `act` is called before memlog's system call number `moment`, from 1 on. Returns how many calls
  // there were.
  int step(const std::string& what, pid_t pid, int moment, const std::function<void(pid_t)>& act,
           Result* result = nullptr) const {
    int calls = 0;
    Result end = run_stepwise(tool({what, std::to_string(pid)}), [&](const ToolCall& call) {
      if (!call.made && ++calls == moment) act(call.pid);
      return true;
    });
    if (result != nullptr) *result = std::move(end);
    return calls;
  }
  static constexpr int kMoments = 40;  // of an attach, evenly over its calls
  void attach_and_detach(pid_t pid, int rounds = 1) const {
    for (int round = 0; round < rounds; ++round) {
      expect_good(attach(pid));
      expect_good(detach(pid));
    }
  }
};

TEST_F(AttachTest, CountsWhatComesAfterwards) {
  Ready process(plain({program("attached"), "sites"}));
  process.say("aanp", "told");
  expect_good(attach(process.pid()));
  std::string told;
  for (const std::string& line : process.say("aaannffrp", "told")) told += line + '\n';
  expect_good(report(process.pid()));
  const std::vector<Memlog> logs = logs_of(process.pid(), 1);
  // What its sites hold, without the two blocks from before.
  Sites expected = told_sites(told)[1];
  expected["site_attached"] += {-2 * 321, -2};
  expected["site_new"] += {-123, -1};
  const std::string file = program("attached");
  EXPECT_EQ(site_sums(logs, file, file), expected);
  EXPECT_EQ(logs[0].number("unknown-frees"), 3);
  expect_exit(process.wait());
  EXPECT_EQ(logs_of(process.pid()).back().get("trigger"), "exit");
}

// Also attached and detached several times, and once it is detached the signal ends it again.
TEST_F(AttachTest, DetachedItIsAsBefore) {
  Ready process(plain({program("attached"), "sites"}));
  for (int round = 0; round < 5; ++round) {
    expect_good(attach(process.pid()));
    EXPECT_HAS(attach(process.pid()).out, "attached already");
    process.say("ap", "told");
    expect_good(report(process.pid()));
    expect_good(detach(process.pid()));
    EXPECT_HAS(detach(process.pid()).out, "detached already");
    process.say("ap", "told");
    expect_exit(memlog({"report", process.id()}), 1);
  }
  // Each round is a series of its own, and counts what it has seen.
  const auto all = all_logs();
  EXPECT_EQ(all.size(), 5u);
  for (const auto& [name, logs] : all) {
    EXPECT_EQ(logs.size(), 1u) << name;
    const std::string file = program("attached");
    EXPECT_EQ(site_sums(logs, file, file), (Sites{{"site_attached", {321, 1}}})) << name;
  }
  EXPECT_EQ(process.end(SIGUSR1).how(), "signal 10");
}

// Options of the library, from the command line and from memlog's environment.
TEST_F(AttachTest, Options) {
  Ready process(plain({program("attached"), "sites"}));
  const Result attached =
      run(plain({memlog_tool(), "attach", "--quiet", "--depth", "3", "--signal", "USR2", "--output",
                 temp() + "/elsewhere", process.id()},
                {{"MTRACE_EXIT_REPORT", "0"}, {"MTRACE_DEPTH", "7"}, {"MTRACE_RESOLVER", "none"}}));
  expect_good(attached);
  EXPECT_EQ(attached.out, "");
  process.say("ap", "told");
  process.send(SIGUSR2);
  const std::string path = temp() + "/elsewhere/attached-" + process.id() + "-1.memlog";
  wait_until("the report", [&] { return fs::exists(path); });
  expect_exit(process.wait());
  const std::string line = read_memlog(path).get("library");
  for (const char* option : {"MTRACE_DEPTH=3", "MTRACE_SIGNAL=USR2", "MTRACE_EXIT_REPORT=0"}) {
    EXPECT_HAS(line, option);
  }
  EXPECT_EQ(names_in(temp() + "/elsewhere").size(), 1u);
}

TEST_F(AttachTest, WaitingCallOfTheOnlyThreadGoesOn) {
  Ready process(plain({program("attached"), "alone"}));
  wait_until_blocked(process.pid(), SYS_poll);
  attach_and_detach(process.pid(), 3);
  process.write("x");
  EXPECT_EQ(process.read_line(), "poll 1 ");
  expect_exit(process.wait());
}

TEST_F(AttachTest, InSignalHandlers) {
  Ready process(plain({program("attached"), "handler"}));
  expect_good(attach(process.pid()));
  expect_good(report(process.pid()));
  expect_good(detach(process.pid()));
  EXPECT_EQ(lines_of(expect_exit(process.wait()).out).back(), "handled");
}

TEST_F(AttachTest, NotInsideTheLoader) {
  Ready process(plain({program("attached"), "loading", program("plugin_slow.so")}));
  const Result refused = memlog({"attach", "--timeout", "1", process.id()});
  expect_refused(refused, "is inside ld-linux-x86-64.so.2");
  process.say("x", "loaded");
  expect_good(attach(process.pid()));
  expect_exit(process.wait());
}

TEST_F(AttachTest, NotDuringVfork) {
  Ready process(plain({program("attached"), "vfork"}));
  const std::string children = "/proc/" + process.id() + "/task/" + process.id() + "/children";
  wait_until("the child", [&] { return !read_file(children).empty(); });
  const Result refused = memlog({"attach", "--timeout", "1", process.id()});
  expect_refused(refused, "did not reach a safe point");
  process.say("x", "child 5");
  expect_good(attach(process.pid()));
  expect_exit(process.wait());
}

TEST_F(AttachTest, BusyThreads) {
  Ready process(plain({program("attached"), "busy"}));
  for (int round = 0; round < 10; ++round) {
    expect_good(attach(process.pid()));
    if (round % 3 == 0) expect_good(report(process.pid()));
    expect_good(detach(process.pid()));
  }
  EXPECT_EQ(lines_of(expect_exit(process.wait()).out).back(), "done");
}

// An allocator in the program, whose lock the first thread holds nearly all the time, in a function
// of any name. The thread that waits in poll is the one that loads the library.
TEST_F(AttachTest, AllocatorOfTheProgram) {
  for (int round = 0; round < 12; ++round) {
    Ready process(plain({program("partitions"), "worker"}));
    attach_and_detach(process.pid());
    EXPECT_TRUE(process.wait().exited(5)) << "unhurt";
  }
}

TEST_F(AttachTest, AllocatorOfTheProgramAndNobodyWaits) {
  Ready process(plain({program("partitions"), "nobody"}));
  EXPECT_HAS(expect_exit(memlog({"attach", "--timeout", "2", process.id()}), 1).err,
             "has its own allocator (malloc of partitions), and none of its threads "
             "waits in a system call");
  EXPECT_LACKS(read_file("/proc/" + process.id() + "/maps"), "libmtrace");
  EXPECT_TRUE(process.end(SIGTERM).exited(5)) << "unhurt";
}

// Nothing that the library does as it begins waits for the lock of the exit handlers. The report at
// exit is there nevertheless, though quick_exit calls no destructor.
TEST_F(AttachTest, WhileAThreadHoldsTheLockOfTheExitHandlers) {
  Ready process(plain({program("registers_slowly")}));
  expect_good(attach(process.pid()));
  process.write("\n");
  expect_exit(process.wait(), 5);
  const std::string file = program("registers_slowly");
  EXPECT_EQ(site_sums(logs_of(process.pid()), file, file), (Sites{{"site_last", {1008, 1}}}));
}

// A stopped process stays stopped, and is attached to.
TEST_F(AttachTest, StoppedProcess) {
  Ready process(plain({program("attached"), "sites"}));
  process.send(SIGSTOP);
  wait_until("the stop", [&] { return process_state(process.pid()) == 'T'; });
  expect_good(attach(process.pid()));
  wait_until("it to be stopped again", [&] { return process_state(process.pid()) == 'T'; });
  process.send(SIGCONT);
  process.say("ap", "told");
  expect_good(report(process.pid()));
  EXPECT_EQ(logs_of(process.pid()).size(), 1u);
  expect_exit(process.wait());
}

// memlog is killed at a system call, of those all over an attach and a detach: the program lives,
// and can be attached to.
TEST_F(AttachTest, MemlogKilledMeanwhile) {
  Ready process(plain({program("attached"), "waiting"}));
  const auto killed_at = [&](const char* what, int moment) {
    const int calls = step(what, process.pid(), moment, [](pid_t tool) { ::kill(tool, SIGKILL); });
    EXPECT_NE(process_state(process.pid()), 'Z') << what << ' ' << moment;
    return calls;
  };
  const int attaches = killed_at("attach", 0);
  const int detaches = killed_at("detach", 0);
  ASSERT_GT(std::min(attaches, detaches), kMoments);
  for (int i = 0; i < kMoments; ++i) {
    killed_at("attach", 1 + attaches * i / kMoments);
    killed_at("detach", 1 + detaches * i / kMoments);
  }
  attach(process.pid());
  expect_good(detach(process.pid()));
  expect_exit(process.wait());
}

TEST_F(AttachTest, Refusals) {
  Ready process(plain({program("attached"), "sites"}));
  expect_refused(memlog({"attach", "999999999"}), "no process 999999999");
  expect_refused(memlog({"attach", "2"}), "is part of the kernel");
  expect_refused(memlog({"attach", "1"}), "is the first process of this system");
  expect_refused(detach(process.pid()), "is not attached to");
  Ready preloaded(traced({program("idle"), "read"}));
  expect_refused(attach(preloaded.pid()), "has libmtrace.so preloaded");
  expect_refused(detach(preloaded.pid()),
                 "was started with libmtrace.so preloaded, not attached to, and stays traced");
  preloaded.write("x");
  expect_exit(preloaded.wait());
  // Of the shell that becomes memlog.
  const Result itself = run(plain({"/bin/sh", "-c", "exec \"$0\" attach $$", memlog_tool()}));
  expect_refused(itself, "is this program itself");
  Process zombie(plain({"/bin/true"}));
  wait_until("its end", [&] { return process_state(zombie.pid()) == 'Z'; });
  expect_refused(attach(zombie.pid()), "has ended, and waits for its parent");
  zombie.wait();
  expect_exit(process.wait());
}

TEST_F(AttachTest, RefusesWhatIsTraced) {
  Ready process(plain({program("attached"), "sites"}));
  ASSERT_EQ(ptrace(PTRACE_SEIZE, process.pid(), nullptr, nullptr), 0);
  expect_refused(attach(process.pid()),
                 "is traced already, by process " + std::to_string(getpid()));
  ASSERT_EQ(ptrace(PTRACE_INTERRUPT, process.pid(), nullptr, nullptr), 0);
  int status = 0;
  ASSERT_EQ(waitpid(process.pid(), &status, 0), process.pid());
  ASSERT_EQ(ptrace(PTRACE_DETACH, process.pid(), nullptr, nullptr), 0);
  expect_good(attach(process.pid()));
  expect_exit(process.wait());
}

// The kernel lets nobody look who may not.
TEST_F(AttachTest, RefusesWhatIsProtected) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  Ready process(plain({program("attached"), "sites"}));
  fs::permissions(temp(), fs::perms::all);
  fs::permissions(out(), fs::perms::all);
  fs::copy_file(memlog_tool(), temp() + "/memlog");
  fs::copy_file(library(), temp() + "/libmtrace.so");
  const Words nobody = {"/usr/bin/setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=-all"};
  Command command = plain(joined(nobody, {temp() + "/memlog", "attach", process.id()}));
  command.directory = out();
  expect_refused(run(command), "belongs to another user");
  expect_exit(process.wait());
}

// It sees neither the library nor the directory of the caller, and has a pid of its own.
TEST_F(AttachTest, InAnotherNamespace) {
  if (run(plain({"/usr/bin/unshare", "--mount", "--pid", "--fork", "/bin/true"})).status != 0) {
    GTEST_SKIP() << "may not make namespaces";
  }
  const std::string copy = temp() + "/attached";
  fs::copy_file(program("attached"), copy);
  Ready process(
      plain({"/usr/bin/unshare", "--mount", "--pid", "--fork", "--mount-proc", "/bin/sh", "-ec",
             "mount -t tmpfs none \"$1\"; mount -t tmpfs none \"$2\"; "
             "exec \"$3\" sites",
             "sh", build_dir(), out(), copy}));
  const std::vector<pid_t> children = children_of(process.pid());
  ASSERT_EQ(children.size(), 1u);
  const pid_t pid = children[0];
  expect_good(attach(pid));
  process.say("aap", "told");
  const Result reported = report(pid);
  expect_good(reported);
  EXPECT_EQ(reported.out, "attached-1-1.memlog\n");
  const Memlog log = only_log("attached");
  EXPECT_EQ(log.get("resolved"), "yes") << "by the files that the process sees";
  EXPECT_EQ(log.number("pid"), 1);
  EXPECT_EQ(log.amount("live"), (Amount{2 * 321, 2}));
  expect_good(detach(pid));
  expect_good(attach(pid));
  expect_good(detach(pid));
  expect_exit(process.wait());
}

// The first process of a container, from inside.
TEST_F(AttachTest, FirstProcessOfANamespaceFromInside) {
  if (run(plain({"/usr/bin/unshare", "--mount", "--pid", "--fork", "/bin/true"})).status != 0) {
    GTEST_SKIP() << "may not make namespaces";
  }
  Command command =
      plain({"/usr/bin/unshare", "--mount", "--pid", "--fork", "--mount-proc", "/bin/sh", "-c",
             "\"$1\" attach 1 >&2; echo attached: $?; read line", "sh", memlog_tool()});
  command.directory = out();
  Process process(command);
  process.read_until("attached: 0");
  process.wait();
  EXPECT_EQ(logs_of("sh").at(0).get("trigger"), "exit");
}

// A process that ends at a system call of memlog, of those all over the attach.
TEST_F(AttachTest, EndingProcesses) {
  const auto ended_at = [&](int moment) {
    Ready process(plain({"/bin/sh", "-c", "echo ready; read line"}));
    Result result;
    const int calls = step(
        "attach", process.pid(), moment, [&](pid_t) { process.send(SIGKILL); }, &result);
    EXPECT_TRUE(result.exited(0) || result.exited(1)) << moment << result.how() << result.err;
    process.send(SIGKILL);
    EXPECT_EQ(process.wait().how(), "signal 9") << moment;
    return calls;
  };
  const int calls = ended_at(0);
  ASSERT_GT(calls, kMoments);
  for (int i = 0; i < kMoments; ++i) ended_at(1 + calls * i / kMoments);
}

// What a fork's child does is counted under its own name, and the child is detached by itself.
TEST_F(AttachTest, ForkedChild) {
  Ready process(plain({"/usr/bin/python3", "-c", R"TEXT(
import os, sys
print('ready', flush=True)
sys.stdin.readline()
child = os.fork()
kept = [bytes(1000 + i) for i in range(100)]
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
print('end', flush=True)
sys.stdin.read()
)TEXT"}));
  expect_good(attach(process.pid()));
  process.say("go\n", "end");
  expect_good(detach(process.pid()));
  expect_exit(process.wait());
  const auto all = all_logs();
  ASSERT_EQ(all.size(), 1u) << "the child's report at its end";
  EXPECT_EQ(all.begin()->second[0].number("parent"), process.pid());
  EXPECT_GE(all.begin()->second[0].amount("live").bytes, 100'000);
}

// A file with several programs, as busybox and redis-server are: known by the name by which it was
// started, also after it has written its state there.
TEST_F(AttachTest, NameByWhichItWasStarted) {
  const std::string link = temp() + "/many-programs-server";
  fs::create_symlink(program("attached"), link);
  for (const char* script :
       {"exec \"$0\" sites", "exec -a 'many-programs-server: ready' \"$0\" sites"}) {
    Ready process(plain({"/bin/bash", "-c", script, link}));
    const Result result = expect_exit(attach(process.pid()));
    const std::string subject = process.id() + " (many-programs-server) ";
    EXPECT_TRUE(result.out.starts_with(subject)) << result.out;
    EXPECT_TRUE(fs::exists(report_path("many-programs-server", process.pid(), 1)) ||
                memlog({"report", process.id()}).out.find("many-programs-server-") !=
                    std::string::npos);
    process.write("q");
    expect_exit(process.wait());
  }
}

}  // namespace
}  // namespace mtrace::test
