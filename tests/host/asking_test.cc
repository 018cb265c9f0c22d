// What happens to a process between memlog's look at it and what memlog does to it: it ends, or
// becomes another program, or somebody else asks it, too; and by which way it is asked.
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <list>

#include "host_test.h"
#include "seccomp_filter.h"
#include "stepped_tool.h"

namespace mtrace::test {
namespace {

bool sends_trigger(const ToolCall& call) {
  return !call.made && ((call.number == SYS_pidfd_send_signal && call.arguments[1] == SIGUSR1) ||
                        (call.number == SYS_kill && call.arguments[1] == SIGUSR1) ||
                        (call.number == SYS_tgkill && call.arguments[2] == SIGUSR1));
}

bool opens_memory(const ToolCall& call) {
  return call.number == SYS_openat && call.path.starts_with("/proc/") &&
         call.path.ends_with("/mem");
}

// What kernel.yama.ptrace_scope and another user's process have in common: no look at its memory.
Command without_tracing(const Command& command) {
  std::vector<sock_filter> code = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const unsigned number : {SYS_process_vm_readv, SYS_process_vm_writev, SYS_ptrace}) {
    answer_call(code, number, SECCOMP_RET_ERRNO | EPERM);
  }
  code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  return under_filter(command, code);
}

// The program that becomes others, once it is there.
class Execs : public Process {
 public:
  explicit Execs(const Command& command) : Process(command) { read_until("ready " + id()); }
};

class AskingTest : public HostTest {
 protected:
  // Not in out(): a report that memlog takes from a ledger is a snapshot, without all keys.
  Command tool(Words words) const {
    Command command = HostTest::tool(std::move(words));
    command.directory = temp();
    return command;
  }
  Result report(pid_t pid, const std::string& label) const {
    return run(tool({"report", "--timeout", "600", "--label", label, std::to_string(pid)}));
  }
  Command with_ledger(Words argv) const {
    return traced(std::move(argv), {{"MTRACE_LEDGER", temp()}});
  }
  // Where the report is that memlog speaks of.
  std::string path_in(const Result& result) const {
    const Words lines = lines_of(result.out);
    return lines.size() == 1 ? fs::path(temp()) / lines[0] : fs::path();
  }
};

// It becomes a program without the library just before memlog would send a signal.
TEST_F(AskingTest, AnotherProgramBeforeTheSignal) {
  Ready process(traced({program("execs")}));
  bool sent = false;
  run_stepwise(tool({"report", process.id()}), [&](const ToolCall& call) {
    if (sends_trigger(call) && !sent) {
      sent = true;
      process.say("bare\n", "bare");
    }
    return true;
  });
  EXPECT_FALSE(sent) << "a thread can be borrowed";
  expect_exit(process.wait());
}

// No thread can be borrowed: the signal comes while all stand still, and none can go elsewhere.
TEST_F(AskingTest, NoOtherProgramWhileItIsHeld) {
  Ready process(traced({program("execs")}));
  int sent = 0;
  int opened = 0;
  const Result result =
      run_stepwise(tool({"report", "--label", "held", process.id()}), [&](const ToolCall& call) {
        if (sends_trigger(call) && ++sent == 1) {
          process.write("bare\n");
          EXPECT_EQ(process_state(process.pid()), 't');
        }
        // The one that would write the code that is run by a borrowed thread.
        return !opens_memory(call) || call.made || opened++ > 0;
      });
  EXPECT_EQ(sent, 1);
  process.read_until("bare");
  EXPECT_EQ(read_memlog(report_path("execs", process.pid(), 1)).get("label"), "held") << result.err;
  expect_exit(process.wait());
}

// Nor can it be held, because another program traces it: exec waits until the signal was sent.
TEST_F(AskingTest, ExecWaitsForTheSignal) {
  Ready process(traced({program("execs")}));
  const Tracer tracer(process.pid());
  int sent = 0;
  run_stepwise(tool({"report", "--signal", process.id()}), [&](const ToolCall& call) {
    if (sends_trigger(call) && ++sent == 1) {
      process.write("bare\n");
      const std::string of = "/proc/" + process.id();
      wait_until("exec", [&] {
        return read_file(of + "/environ").empty() ||
               read_file(of + "/syscall").starts_with(std::to_string(SYS_futex) + " ");
      });
    }
    return true;
  });
  EXPECT_EQ(sent, 1);
  process.read_until("bare");
  expect_exit(process.wait());
}

// A debugger would stop at the signal: it is sent only on demand.
TEST_F(AskingTest, ProcessOfADebugger) {
  Ready process(traced({program("execs")}));
  const Tracer tracer(process.pid());
  EXPECT_HAS(expect_exit(run(tool({"report", process.id()})), 1).err,
             "which would get the signal first: detach that, or use --signal");
  EXPECT_TRUE(logs_of(process.pid()).empty());
  expect_exit(run(tool({"report", "--signal", process.id()})));
  EXPECT_EQ(logs_of(process.pid()).size(), 1u);
  expect_exit(process.wait());
}

// One that came just before is not left to the next program.
TEST_F(AskingTest, SignalJustBeforeExec) {
  Command command = traced({program("execs")});
  command.input = "bare\n";
  bool sent = false;
  pid_t pid = 0;
  const Result result = run_stepwise(command, [&](const ToolCall& call) {
    if (call.number == SYS_getpid && call.made) pid = static_cast<pid_t>(call.result);
    if (call.number == SYS_rt_sigtimedwait && !call.made && !sent) {
      sent = kill(pid, SIGUSR1) == 0;
    }
    return true;
  });
  EXPECT_TRUE(sent);
  expect_exit(result);
  EXPECT_HAS(result.out, "bare\n");
}

// What was announced is taken back.
TEST_F(AskingTest, AfterAnExecThatFailed) {
  for (const bool ledger : {false, true}) {
    Ready process(ledger ? with_ledger({program("execs")}) : traced({program("execs")}));
    process.say("fail\n", "failed");
    expect_exit(report(process.pid(), "after"));
    expect_exit(process.wait());
  }
}

// The same from memlog run, which asks again and again.
TEST_F(AskingTest, EverySoOftenAndAnotherProgram) {
  const std::string fifo = temp() + "/input";
  const std::string said = temp() + "/said";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  int input = open(fifo.c_str(), O_RDWR | O_CLOEXEC);
  const auto tell = [&](const std::string& line) {
    EXPECT_EQ(write(input, line.data(), line.size()), static_cast<ssize_t>(line.size()));
  };
  bool sent = false;
  const Command command =
      tool({"run", "--quiet", "--every", "100ms", "--output", out(), "--", "/bin/sh", "-c",
            "exec " + program("execs") + " <" + fifo + " >" + said});
  const Result result = run_stepwise(command, [&](const ToolCall& call) {
    if (sends_trigger(call) && !sent) {
      sent = true;
      tell("bare\n");
      wait_until("exec", [&] { return read_file(said).find("bare") != std::string::npos; });
    }
    if (input >= 0 && call.number == SYS_rt_sigtimedwait && !call.made) {
      if (!sent && names_in(out()).size() < 2) {
        tell("keep 1\n");
      } else {
        close(input);
        input = -1;
      }
    }
    return true;
  });
  EXPECT_FALSE(sent) << "it has a ledger";
  expect_exit(result);
  for (const Memlog& log : logs_of("execs")) {
    EXPECT_NE(log.get("trigger"), "signal");
  }
}

// A process of several threads that becomes another program all the time, by raw system calls, and
// is asked all the time.
TEST_F(AskingTest, StormOfExecs) {
  Process process(traced({program("exec_storm"), "40", "raw"}, {{"MTRACE_EXIT_REPORT", "0"}}));
  while (process_state(process.pid()) != 'Z') {
    run(tool({"report", "--timeout", "1", process.id()}));
  }
  expect_exit(process.wait());
}

// A process that waits for a child, as shells do, has no frame of the library's: its thread can be
// borrowed.
TEST_F(AskingTest, WhileItWaitsForAChild) {
  Process process(traced({"/bin/sh", "-c", "/bin/cat; exit 5"}));
  wait_until_blocked(process.pid(), SYS_wait4);
  expect_exit(memlog({"report", process.id()}));
  EXPECT_EQ(logs_of(process.pid()).at(0).get("trigger"), "api");
  expect_exit(process.wait(), 5);
}

// A signal that comes while a thread is borrowed ends the call that waited for it: its handler does
// not run before the thread is back in the call.
TEST_F(AskingTest, ASignalForTheBorrowedThread) {
  for (const char* const call : {"sigsuspend", "pause"}) {
    const long number = call == std::string("pause") ? SYS_pause : SYS_rt_sigsuspend;
    // Before each change of its registers: that is when memlog lets it run.
    for (int moment = 1; moment <= 6; ++moment) {
      Ready process(traced({program("awaits_signal"), call}));
      wait_until_blocked(process.pid(), number);
      int changes = 0;
      run_stepwise(tool({"report", process.id()}), [&](const ToolCall& made) {
        if (made.number != SYS_ptrace || made.arguments[0] != PTRACE_SETREGSET || made.made) {
          return true;
        }
        if (++changes == moment) process.send(SIGUSR2);
        return true;
      });
      EXPECT_GE(changes, 4) << "no thread was borrowed";
      if (changes < moment) process.send(SIGUSR2);
      SCOPED_TRACE(std::string(call) + ", moment " + std::to_string(moment));
      expect_exit(process.wait());
    }
  }
}

// Calls that no handled signal leaves alone go on, with a ledger and without.
TEST_F(AskingTest, WaitingCallsAreNotInterrupted) {
  for (const char* mode : {"poll", "select", "epoll"}) {
    for (const bool ledger : {false, true}) {
      if (ledger && mode != std::string("poll")) continue;  // a second for each
      Ready process(ledger ? with_ledger({program("idle"), mode})
                           : traced({program("idle"), mode}));
      wait_until("its call", [&] { return process_state(process.pid()) == 'S'; });
      const Result result = report(process.pid(), mode);
      EXPECT_EQ(read_memlog(path_in(result)).get("label"), mode) << result.err;
      process.write("x");
      EXPECT_HAS(expect_exit(process.wait()).out, "interrupted 0\n") << mode;
    }
  }
}

// Nor does memlog attach --every interrupt them, in a process that has no ledger.
TEST_F(AskingTest, EverySoOftenInterruptsNothing) {
  Ready process(plain({program("idle"), "poll"}));
  wait_until("its call", [&] { return process_state(process.pid()) == 'S'; });
  Process asking(
      // With a ledger it would be left alone: nothing changes.
      tool({"attach", "--ledger", "none", "--every", "100ms", "--output", out(), process.id()}));
  wait_for_report("idle", process.pid(), 2);
  asking.send(SIGINT);
  expect_exit(asking.wait());
  expect_exit(memlog({"report", process.id()}));  // it stays attached
  process.write("x");
  EXPECT_HAS(process.wait().out, "interrupted 0\n");
}

// Each has a report of its own, with its own label.
TEST_F(AskingTest, SeveralAtATime) {
  for (const bool ledger : {false, true}) {
    Process process(ledger ? with_ledger({program("live_target"), "busy"})
                           : traced({program("idle"), "read"}));
    process.read_until(ledger ? "go" : "ready");
    std::list<Process> tools;
    constexpr int kTools = 6;
    for (int i = 0; i < kTools; ++i) {
      tools.emplace_back(
          tool({"report", "--timeout", "600", "--label", std::to_string(i), process.id()}));
    }
    std::set<std::string> paths;
    int label = 0;
    for (Process& one : tools) {
      const Result result = expect_exit(one.wait());
      const std::string path = path_in(result);
      EXPECT_EQ(read_memlog(path).get("label"), std::to_string(label++)) << path;
      paths.insert(path);
    }
    EXPECT_EQ(paths.size(), size_t{kTools});
    process.send(SIGKILL);
  }
}

// Who may not look at its memory still has its ledger.
TEST_F(AskingTest, WithoutTheRightToTrace) {
  for (const bool busy : {true, false}) {
    Process process(busy ? with_ledger({program("live_target"), "busy"})
                         : with_ledger({program("live_target")}));
    process.read_until("go");
    const Result result = expect_exit(run(
        without_tracing(tool({"report", "--timeout", "600", "--label", "mine", process.id()}))));
    const Memlog log = read_memlog(path_in(result));
    EXPECT_EQ(log.get("trigger"), busy ? "request" : "snapshot");
    EXPECT_EQ(log.get("label"), "mine");
    process.send(SIGKILL);
  }
}

// The process ends just after the tool has opened one of its files in /proc, for each that it
// opens. There is a message, and no other process has to suffer.
TEST_F(AskingTest, EndBetweenOpeningAndReading) {
  Command preloaded = traced({program("idle"), "read"});
  preloaded.env["MTRACE_OUTPUT"] = temp();  // one that is killed at its report leaves a part there
  const Command alone = plain({program("idle"), "read"});
  const Command mapped = with_ledger({program("idle"), "read"});
  const std::vector<std::pair<Words, Command>> all_commands = {
      {{"report"}, preloaded}, {{"status"}, preloaded},     {{"attach", "--ledger", temp()}, alone},
      {{"detach"}, alone},     {{"top", "--once"}, mapped}, {{"expire"}, mapped}};
  for (const auto& [words, command] : all_commands) {
    for (int chosen = 1, seen = 0; seen >= chosen - 1; ++chosen) {
      Ready process(command);
      const std::string of = "/proc/" + process.id() + "/";
      Words all = words;
      all.push_back(process.id());
      seen = 0;
      std::string file;
      const Result result = run_stepwise(tool(all), [&](const ToolCall& call) {
        const bool counts = call.number == SYS_openat && call.made && call.result >= 0 &&
                            call.path.starts_with(of) &&
                            call.path.find("map_files") == std::string::npos;
        if (counts && ++seen == chosen) {
          file = call.path;
          process.send(SIGKILL);
          wait_until("its end", [&] { return process_state(process.pid()) == 'Z'; });
          // Its parent would wait in vain where the tool holds it.
          const bool held = read_file(of + "status").find("TracerPid:\t0\n") == std::string::npos;
          if (!held) process.wait();
        }
        // It would go on for ever.
        if (call.number == SYS_poll && words[0] == "expire" && process_state(process.pid()) != 0) {
          process.send(SIGKILL);
        }
        return true;
      });
      const std::string what = words[0] + ", " + file;
      EXPECT_TRUE(WIFEXITED(result.status)) << what << ": " << result.how();
      EXPECT_LACKS(result.err, "basic_filebuf") << what;
    }
  }
}

// A child of the program does so while memlog run looks whom to ask: the program goes on.
TEST_F(AskingTest, EndOfAChildWhileTheFamilyIsLookedAt) {
  for (int chosen = 1, seen = 0; seen >= chosen - 1; ++chosen) {
    const std::string pids = temp() + "/pids" + std::to_string(chosen);
    seen = 0;
    std::string file;
    const Command command =
        tool({"run", "--quiet", "--every", "100ms", "--output", temp(), "--", "/bin/sh", "-c",
              "sleep 1000 & echo $! >" + pids + "; wait; exit 7"});
    pid_t child = 0;
    bool looked = false;
    const Result result = run_stepwise(command, [&](const ToolCall& call) {
      if (call.number != SYS_openat && call.number != SYS_rt_sigtimedwait) return true;
      if (child == 0) child = atoi(read_file(pids).c_str());
      if (child == 0 || seen >= chosen) return true;
      // At the end of a tick in which there were fewer files, it is over.
      if (call.number == SYS_rt_sigtimedwait) {
        if (looked && !call.made) kill(child, SIGKILL);
        return true;
      }
      if (call.made && call.result >= 0 &&
          call.path.starts_with("/proc/" + std::to_string(child) + "/") &&
          call.path.find("map_files") == std::string::npos) {
        looked = true;
        if (++seen == chosen) {
          file = call.path;
          kill(child, SIGKILL);
          wait_until("its end", [&] { return process_state(child) == 'Z' || kill(child, 0) != 0; });
        }
      }
      return true;
    });
    EXPECT_TRUE(result.exited(7)) << file << ": " << result.how() << result.err;
    EXPECT_LACKS(result.err, "basic_filebuf") << file;
  }
}

}  // namespace
}  // namespace mtrace::test
