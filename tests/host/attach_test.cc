// memlog attach and detach: what is counted, that the program notices nothing, and where memlog has
// to wait or to refuse.
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
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
    Command command = plain({memlog_tool(), what, std::to_string(pid)});
    command.directory = out();
    int calls = 0;
    Result end = run_stepwise(command, [&](const ToolCall& call) {
      if (!call.made && ++calls == moment) act(call.pid);
      return true;
    });
    if (result != nullptr) *result = std::move(end);
    return calls;
  }
  static constexpr int kMoments = 40;  // of an attach, evenly over its calls
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
  const Result result = expect_exit(process.wait());
  EXPECT_EQ(logs_of(process.pid()).back().get("trigger"), "exit");
}

// Also attached and detached several times, and once it is detached the signal ends it again.
TEST_F(AttachTest, DetachedItIsAsBefore) {
  Process process(plain({program("attached"), "sites"}));
  process.read_until("ready");
  for (int round = 0; round < 5; ++round) {
    expect_good(attach(process.pid()));
    EXPECT_HAS(attach(process.pid()).out, "attached already");
    process.write("ap");
    process.read_until("told");
    expect_good(report(process.pid()));
    expect_good(detach(process.pid()));
    EXPECT_HAS(detach(process.pid()).out, "detached already");
    process.write("ap");
    process.read_until("told");
    expect_exit(memlog({"report", std::to_string(process.pid())}), 1);
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

// Options of the library, from the command line and from memlog's environment.
TEST_F(AttachTest, Options) {
  Process process(plain({program("attached"), "sites"}));
  process.read_until("ready");
  Command command = plain({memlog_tool(), "attach", "--quiet", "--depth", "3", "--signal", "USR2",
                           "--output", temp() + "/elsewhere", std::to_string(process.pid())});
  command.env["MTRACE_EXIT_REPORT"] = "0";
  command.env["MTRACE_DEPTH"] = "7";
  command.env["MTRACE_RESOLVER"] = "none";
  const Result attached = run(command);
  expect_good(attached);
  EXPECT_EQ(attached.out, "");
  process.write("ap");
  process.read_until("told");
  process.send(SIGUSR2);
  const std::string path =
      temp() + "/elsewhere/attached-" + std::to_string(process.pid()) + "-1.memlog";
  wait_until("the report", [&] { return std::filesystem::exists(path); });
  process.close_input();
  expect_exit(process.wait());
  const std::string line = read_memlog(path).get("library");
  for (const char* option : {"MTRACE_DEPTH=3", "MTRACE_SIGNAL=USR2", "MTRACE_EXIT_REPORT=0"}) {
    EXPECT_HAS(line, option);
  }
  const std::filesystem::directory_iterator files(temp() + "/elsewhere");
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

// memlog stays and asks, until it is interrupted; the process stays attached.
TEST_F(AttachTest, ReportsEverySoOften) {
  Process process(plain({program("attached"), "sites"}));
  process.read_until("ready");
  // With a ledger it would be left alone: nothing changes.
  Command command = plain({memlog_tool(), "attach", "--ledger", "none", "--every", "100ms",
                           std::to_string(process.pid())});
  command.directory = out();
  command.env["MTRACE_RESOLVER"] = "none";
  Process tool(command);
  wait_for_report("attached", process.pid(), 3);
  tool.send(SIGINT);
  expect_exit(tool.wait());
  expect_good(report(process.pid()));
  process.close_input();
  expect_exit(process.wait());
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
  const Result result = expect_exit(process.wait());
  std::vector<std::string> lines = lines_of(result.out);
  lines.erase(lines.begin());
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines, (std::vector<std::string>{"condition 0 ", "epoll_wait 1 ", "nanosleep 0 ",
                                             "poll 1 ", "read 0 ", "sem_wait 0 "}))
      << result.out;
}

TEST_F(AttachTest, WaitingCallOfTheOnlyThreadGoesOn) {
  Process process(plain({program("attached"), "alone"}));
  process.read_until("ready");
  wait_until_blocked(process.pid(), SYS_poll);
  for (int round = 0; round < 3; ++round) {
    expect_good(attach(process.pid()));
    expect_good(detach(process.pid()));
  }
  process.write("x");
  EXPECT_EQ(process.read_line(), "poll 1 ");
  expect_exit(process.wait());
}

TEST_F(AttachTest, InSignalHandlers) {
  Process process(plain({program("attached"), "handler"}));
  process.read_until("ready");
  expect_good(attach(process.pid()));
  expect_good(report(process.pid()));
  expect_good(detach(process.pid()));
  process.close_input();
  const Result result = expect_exit(process.wait());
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
  expect_exit(process.wait());
}

TEST_F(AttachTest, NotDuringVfork) {
  Process process(plain({program("attached"), "vfork"}));
  process.read_until("ready");
  const std::string children = "/proc/" + std::to_string(process.pid()) + "/task/" +
                               std::to_string(process.pid()) + "/children";
  wait_until("the child", [&] { return !read_file(children).empty(); });
  const Result refused = memlog({"attach", "--timeout", "1", std::to_string(process.pid())});
  expect_refused(refused, "did not reach a safe point");
  process.write("x");
  process.read_until("child 5");
  expect_good(attach(process.pid()));
  process.close_input();
  expect_exit(process.wait());
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
  const Result result = expect_exit(process.wait());
  EXPECT_EQ(lines_of(result.out).back(), "done");
}

// An allocator in the program, whose lock the first thread holds nearly all the time, in a function
// of any name. The thread that waits in poll is the one that loads the library.
TEST_F(AttachTest, AllocatorOfTheProgram) {
  for (int round = 0; round < 12; ++round) {
    Process process(plain({program("partitions"), "worker"}));
    process.read_until("ready");
    expect_good(attach(process.pid()));
    expect_good(detach(process.pid()));
    process.close_input();
    EXPECT_TRUE(process.wait().exited(5)) << "unhurt";
  }
}

TEST_F(AttachTest, AllocatorOfTheProgramAndNobodyWaits) {
  Process process(plain({program("partitions"), "nobody"}));
  process.read_until("ready");
  Command command =
      plain({memlog_tool(), "attach", "--timeout", "2", std::to_string(process.pid())});
  command.directory = out();
  const Result result = expect_exit(run(command), 1);
  EXPECT_HAS(result.err,
             "has its own allocator (malloc of partitions), and none of its threads "
             "waits in a system call");
  EXPECT_LACKS(read_file("/proc/" + std::to_string(process.pid()) + "/maps"), "libmtrace");
  process.send(SIGTERM);
  EXPECT_TRUE(process.wait().exited(5)) << "unhurt";
}

// Nothing that the library does as it begins waits for the lock of the exit handlers. The report at
// exit is there nevertheless, though quick_exit calls no destructor.
TEST_F(AttachTest, WhileAThreadHoldsTheLockOfTheExitHandlers) {
  Process process(plain({program("registers_slowly")}));
  process.read_until("ready");
  expect_good(attach(process.pid()));
  process.write("\n");
  expect_exit(process.wait(), 5);
  const std::string file = program("registers_slowly");
  EXPECT_EQ(describe(site_sums(logs_of(process.pid()), file, file)),
            describe({{"site_last", {1008, 1}}}));
}

// A stopped process stays stopped, and is attached to.
TEST_F(AttachTest, StoppedProcess) {
  Process process(plain({program("attached"), "sites"}));
  process.read_until("ready");
  process.send(SIGSTOP);
  wait_until("the stop", [&] { return process_state(process.pid()) == 'T'; });
  expect_good(attach(process.pid()));
  wait_until("it to be stopped again", [&] { return process_state(process.pid()) == 'T'; });
  process.send(SIGCONT);
  process.write("ap");
  process.read_until("told");
  expect_good(report(process.pid()));
  EXPECT_EQ(logs_of(process.pid()).size(), 1u);
  process.close_input();
  expect_exit(process.wait());
}

// memlog is killed at a system call, of those all over an attach and a detach: the program lives,
// and can be attached to.
TEST_F(AttachTest, MemlogKilledMeanwhile) {
  Process process(plain({program("attached"), "waiting"}));
  process.read_until("ready");
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
  process.close_input();
  const Result result = expect_exit(process.wait());
}

TEST_F(AttachTest, Refusals) {
  Process process(plain({program("attached"), "sites"}));
  process.read_until("ready");
  expect_refused(memlog({"attach", "999999999"}), "no process 999999999");
  expect_refused(memlog({"attach", "2"}), "is part of the kernel");
  expect_refused(memlog({"attach", "1"}), "is the first process of this system");
  expect_refused(detach(process.pid()), "is not attached to");
  Process preloaded(traced({program("idle"), "read"}));
  preloaded.read_until("ready");
  expect_refused(attach(preloaded.pid()), "has libmtrace.so preloaded");
  expect_refused(detach(preloaded.pid()),
                 "was started with libmtrace.so preloaded, not attached to, and stays traced");
  preloaded.write("x");
  expect_exit(preloaded.wait());
  // Of the shell that becomes memlog.
  const Result itself = run(plain({"/bin/sh", "-c", "exec \"$0\" attach $$", memlog_tool()}));
  expect_refused(itself, "is this program itself");
  process.close_input();
  expect_exit(process.wait());
}

TEST_F(AttachTest, RefusesAStaticProgram) {
  write_file(temp() + "/s.c",
             "#include <stdio.h>\n#include <unistd.h>\n"
             "int main(void) { puts(\"ready\"); fflush(stdout); char c;\n"
             "return read(0, &c, 1) == 0 ? 3 : 4; }\n");
  expect_exit(run(plain({"/usr/bin/gcc", "-static", "-o", temp() + "/s", temp() + "/s.c"})));
  Process process(plain({temp() + "/s"}));
  process.read_until("ready");
  expect_refused(attach(process.pid()), "is statically linked");
  expect_exit(process.wait(), 3);
}

TEST_F(AttachTest, RefusesAZombie) {
  Process process(plain({"/bin/true"}));
  wait_until("its end", [&] { return process_state(process.pid()) == 'Z'; });
  expect_refused(attach(process.pid()), "has ended, and waits for its parent");
  expect_exit(process.wait());
}

TEST_F(AttachTest, RefusesWhatIsTraced) {
  Process process(plain({program("attached"), "sites"}));
  process.read_until("ready");
  ASSERT_EQ(ptrace(PTRACE_SEIZE, process.pid(), nullptr, nullptr), 0);
  expect_refused(attach(process.pid()),
                 "is traced already, by process " + std::to_string(getpid()));
  ASSERT_EQ(ptrace(PTRACE_INTERRUPT, process.pid(), nullptr, nullptr), 0);
  int status = 0;
  ASSERT_EQ(waitpid(process.pid(), &status, 0), process.pid());
  ASSERT_EQ(ptrace(PTRACE_DETACH, process.pid(), nullptr, nullptr), 0);
  expect_good(attach(process.pid()));
  process.close_input();
  expect_exit(process.wait());
}

// The kernel lets nobody look who may not.
TEST_F(AttachTest, RefusesWhatIsProtected) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  Process process(plain({program("attached"), "sites"}));
  process.read_until("ready");
  std::filesystem::permissions(temp(), std::filesystem::perms::all);
  std::filesystem::permissions(out(), std::filesystem::perms::all);
  std::filesystem::copy_file(memlog_tool(), temp() + "/memlog");
  std::filesystem::copy_file(library(), temp() + "/libmtrace.so");
  const std::vector<std::string> nobody = {"/usr/bin/setpriv", "--reuid=65534", "--clear-groups",
                                           "--inh-caps=-all"};
  std::vector<std::string> argv = nobody;
  argv.insert(argv.end(), {temp() + "/memlog", "attach", std::to_string(process.pid())});
  Command command = plain(argv);
  command.directory = out();
  expect_refused(run(command), "belongs to another user");
  process.close_input();
  expect_exit(process.wait());
}

// It sees neither the library nor the directory of the caller, and has a pid of its own.
TEST_F(AttachTest, InAnotherNamespace) {
  if (run(plain({"/usr/bin/unshare", "--mount", "--pid", "--fork", "/bin/true"})).status != 0) {
    GTEST_SKIP() << "may not make namespaces";
  }
  const std::string copy = temp() + "/attached";
  std::filesystem::copy_file(program("attached"), copy);
  Process process(
      plain({"/usr/bin/unshare", "--mount", "--pid", "--fork", "--mount-proc", "/bin/sh", "-ec",
             "mount -t tmpfs none \"$1\"; mount -t tmpfs none \"$2\"; "
             "exec \"$3\" sites",
             "sh", build_dir(), out(), copy}));
  process.read_until("ready");
  const std::vector<pid_t> children = children_of(process.pid());
  ASSERT_EQ(children.size(), 1u);
  const pid_t pid = children[0];
  expect_good(attach(pid));
  process.write("aap");
  process.read_until("told");
  const Result reported = report(pid);
  expect_good(reported);
  EXPECT_EQ(reported.out, "attached-1-1.memlog\n");
  const std::vector<Memlog> logs = logs_of("attached");
  ASSERT_EQ(logs.size(), 1u);
  EXPECT_EQ(logs[0].get("resolved"), "yes") << "by the files that the process sees";
  EXPECT_EQ(logs[0].number("pid"), 1);
  EXPECT_EQ(logs[0].amount("live"), (Amount{2 * 321, 2}));
  expect_good(detach(pid));
  expect_good(attach(pid));
  expect_good(detach(pid));
  process.close_input();
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
  process.close_input();
  process.wait();
  EXPECT_EQ(logs_of("sh").at(0).get("trigger"), "exit");
}

// A process that ends at a system call of memlog, of those all over the attach.
TEST_F(AttachTest, EndingProcesses) {
  const auto ended_at = [&](int moment) {
    Process process(plain({"/bin/sh", "-c", "echo ready; read line"}));
    process.read_until("ready");
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
  Process process(plain({"/usr/bin/python3", "-c", R"TEXT(
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
  process.read_until("ready");
  expect_good(attach(process.pid()));
  process.write("go\n");
  process.read_until("end");
  expect_good(detach(process.pid()));
  process.close_input();
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
  std::filesystem::create_symlink(program("attached"), link);
  for (const char* script :
       {"exec \"$0\" sites", "exec -a 'many-programs-server: ready' \"$0\" sites"}) {
    Process process(plain({"/bin/bash", "-c", script, link}));
    process.read_until("ready");
    const Result result = expect_exit(attach(process.pid()));
    const std::string subject = std::to_string(process.pid()) + " (many-programs-server) ";
    EXPECT_TRUE(result.out.starts_with(subject)) << result.out;
    EXPECT_TRUE(std::filesystem::exists(report_path("many-programs-server", process.pid(), 1)) ||
                run(plain({memlog_tool(), "report", std::to_string(process.pid())}))
                        .out.find("many-programs-server-") != std::string::npos);
    process.write("q");
    expect_exit(process.wait());
  }
}

}  // namespace
}  // namespace mtrace::test
