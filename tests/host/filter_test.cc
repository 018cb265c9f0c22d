// Programs that give up system calls by filters (seccomp(2)), as sandboxes do, and are asked for
// reports: what the filter would make of the library's calls does not happen to the program.
#include <poll.h>

#include "host_test.h"
#include "seccomp_filter.h"

namespace mtrace::test {
namespace {

class FilterTest : public HostTest {
 protected:
  static Words filters(const Words& arguments) { return joined({program("filters")}, arguments); }
  static Sites sites(const std::vector<Memlog>& logs) {
    return site_sums(logs, program("filters"), program("filters"));
  }
  // The program comes to the end that it comes to without the library.
  Result expect_unhurt(const Command& command) {
    Command without = command;
    without.env.erase("LD_PRELOAD");
    expect_exit(run(without), 5);
    const Result result = expect_exit(run(command), 5);
    EXPECT_EQ(result.err, "");
    return result;
  }
  Result memlog(const Words& arguments) const {
    return run(plain(joined({memlog_tool()}, arguments)));
  }
  Command keeping_a_ledger(const Words& arguments) const {
    return traced(filters(arguments), {{"MTRACE_LEDGER", temp() + "/"}});
  }
};

// Once a thread has added a filter, whatever that does, it begins no report: by signal, by call, at
// exit.
TEST_F(FilterTest, ReportsAreWithheld) {
  for (const Words& arguments : {Words{"prctl", "trap", "open"},
                                 {"seccomp", "trap", "open"},
                                 {"tsync", "trap", "open"},
                                 {"indirect", "trap", "open"},
                                 {"child", "trap", "open"},
                                 {"prctl", "trap", "renderer"},
                                 {"prctl", "kill", "renderer"},
                                 {"prctl", "kill", "open"},
                                 {"seccomp", "kill_thread", "open"},
                                 {"prctl", "kill", "rename"},
                                 {"prctl", "trap", "getpid"},
                                 {"prctl", "errno", "open"},
                                 {"prctl", "trace", "open"},
                                 {"prctl", "notify", "open"},
                                 {"thread_for_all", "trap", "open"}}) {
    SCOPED_TRACE(arguments[0] + " " + arguments[1] + " " + arguments[2]);
    for (const bool names : {false, true}) {
      const Result result =
          expect_unhurt(names ? named(filters(arguments)) : traced(filters(arguments)));
      EXPECT_TRUE(result.out.ends_with("api -1\n")) << result.out;
      const std::vector<Memlog> logs = logs_of(result.pid, 1);
      EXPECT_EQ(sites(logs), (Sites{{"site_before", {1000, 1}}}));
    }
  }
}

// A filter of another thread, or of a child that shares the memory, is none of this one's.
TEST_F(FilterTest, OthersAreNot) {
  for (const Words& arguments :
       {Words{"thread_of_its_own", "trap", "open"}, {"vfork_child", "kill", "open"}}) {
    SCOPED_TRACE(arguments[0]);
    const Result result = expect_unhurt(traced(filters(arguments)));
    EXPECT_TRUE(result.out.ends_with("api 3\n")) << result.out;
    EXPECT_EQ(logs_of(result.pid).size(), 4u);
  }
}

// A program that it becomes has its signals as without this library, and so its reports.
TEST_F(FilterTest, TheNextProgramReports) {
  const Result result = expect_unhurt(traced(filters({"becomes", "kill", "rename"})));
  EXPECT_EQ(result.out, "ready\n");
  // One before the filter, and two of the next program.
  EXPECT_EQ(sites(logs_of(result.pid)), (Sites{{"site_before", {2000, 2}}}));
  EXPECT_EQ(logs_of(result.pid).size(), 3u);
}

// ---- A filter that was there before the program.

// With so many of the standard descriptors closed.
Command without_calls(Command command, unsigned answer, const std::vector<int>& calls,
                      int closed = 0) {
  std::vector<sock_filter> code = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const int number : calls) answer_call(code, static_cast<unsigned>(number), answer);
  code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  command.before_exec = [closed] {
    for (int fd = 0; fd < closed; ++fd) ::close(fd);
  };
  return under_filter(command, code);
}

class InheritedFilterTest : public FilterTest {
 protected:
  size_t reports_under(unsigned answer, const std::vector<int>& calls, bool names = false,
                       const char* first = "forks", int closed = 0) {
    const Words argv = filters({"none", first, "-"});
    const Result result =
        expect_unhurt(without_calls(names ? named(argv) : traced(argv), answer, calls, closed));
    const std::vector<Memlog> logs = logs_of(result.pid);
    if (!logs.empty()) {
      named_ = logs[0].get("resolved");
      EXPECT_EQ(sites(logs), (Sites{{"site_before", {1000, 1}}}));
    }
    return logs.size();
  }
  std::string named_;
};

// What a list of calls that end a program has on it where the program is to stay alone.
const std::vector<int> kProcesses = {SYS_clone, SYS_clone3, SYS_fork, SYS_vfork};
// What memlog and the library call, and hardly a program else.
const std::vector<int> kRare = {SYS_process_vm_readv,
                                SYS_msync,
                                SYS_renameat2,
                                SYS_linkat,
                                SYS_unlinkat,
                                SYS_fchmod,
                                SYS_fallocate,
                                SYS_pwrite64,
                                SYS_memfd_create,
                                SYS_setsid,
                                SYS_setpriority,
                                SYS_dup3,
                                SYS_tkill,
                                SYS_rt_sigpending,
                                SYS_close_range,
                                SYS_uname,
                                SYS_setitimer,
                                SYS_faccessat,
                                SYS_prctl,
                                SYS_sched_yield,
                                SYS_rt_sigtimedwait,
                                SYS_lseek,
                                SYS_clock_getres};
std::vector<int> processes_and_rare() {
  std::vector<int> all = kProcesses;
  all.insert(all.end(), kRare.begin(), kRare.end());
  return all;
}

// Nothing is tried in a program of which it is not known that it may start processes: the trial
// would end it. Its reports are written by calls that it has made itself.
TEST_F(InheritedFilterTest, ProgramThatMayStartNoProcess) {
  for (const unsigned answer :
       {SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD, SECCOMP_RET_TRAP}) {
    for (const bool names : {false, true}) {
      EXPECT_EQ(reports_under(answer, kProcesses, names, "-"), 2u);
      EXPECT_EQ(named_, "no");
      EXPECT_EQ(reports_under(answer, processes_and_rare(), names, "-"), 2u);
    }
  }
}

// Where standard descriptors are closed, as those of man's formatters are, a report's file gets
// such a number at first, which is not left to it: the program may write there.
TEST_F(InheritedFilterTest, ProgramWithoutStandardDescriptors) {
  for (int closed = 1; closed <= 3; ++closed) {
    SCOPED_TRACE(closed);
    EXPECT_EQ(reports_under(SECCOMP_RET_KILL_PROCESS, kProcesses, false, "-", closed), 2u);
  }
  for (const std::string& file : paths_in(out())) EXPECT_GT(fs::file_size(file), 0u) << file;
}

// What starts the resolver shares the memory of the program, but not the life of the thread that
// asked.
TEST_F(InheritedFilterTest, ThreadThatAskedMayEnd) {
  const std::string pipe = temp() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string tool = temp() + "/tool";
  write_file(tool, "#!/bin/sh\nread line <" + pipe + "\n");
  fs::permissions(tool, fs::perms::owner_all);
  Process process(without_calls(traced({program("ended_reporter")}, {{"MTRACE_RESOLVER", tool}}),
                                SECCOMP_RET_ERRNO | EPERM, {SYS_mount}));
  process.read_until("gone");
  const auto end_tool = [&] {
    const int fd = ::open(pipe.c_str(), O_WRONLY | O_NONBLOCK);
    if (fd < 0) return false;
    EXPECT_EQ(::write(fd, "\n", 1), 1);
    // Until it has closed the pipe, it could be taken for the next.
    pollfd closed = {fd, 0, 0};
    EXPECT_EQ(::poll(&closed, 1, -1), 1);
    ::close(fd);
    return true;
  };
  wait_until("the first resolver runs", end_tool);
  process.write("a");
  wait_until("the second resolver runs", end_tool);
  // The exit report may be among those of the second one.
  wait_until("the program ends", [&] {
    end_tool();
    return process_state(process.pid()) == 'Z';
  });
  expect_exit(process.wait());
}

// Nor is a ledger lost, only its removal at the end.
TEST_F(InheritedFilterTest, LedgerOfSuchAProgram) {
  Ready process(without_calls(keeping_a_ledger({"none", "-", "-"}), SECCOMP_RET_KILL_PROCESS,
                              processes_and_rare()));
  process.write("aaa");
  wait_until("the ledger has what was allocated", [&] {
    return memlog({"top", "--once", process.id()}).out.find(" 900 ") != std::string::npos;
  });
  expect_exit(process.wait(), 5);
}

// memlog run has started it under the same filter, which is as good as a fork of its own.
TEST_F(InheritedFilterTest, ProgramOfMemlogRun) {
  const Words argv = joined({memlog_tool(), "run", "--quiet", "--output", out() + "/", "--"},
                            filters({"none", "-", "-"}));
  expect_exit(
      run(without_calls(plain(argv), SECCOMP_RET_KILL_PROCESS, {SYS_process_vm_readv, SYS_uname})),
      5);
  const Words reports = paths_in(out(), ".memlog");
  EXPECT_EQ(reports.size(), 2u);
  for (const std::string& report : reports) EXPECT_NE(read_memlog(report).get("resolved"), "no");
}

// Where the file of a report cannot be renamed, it has its name from the start.
TEST_F(InheritedFilterTest, ReportsInPlace) {
  for (const unsigned answer : {SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_TRAP}) {
    for (const bool names : {false, true}) {
      EXPECT_EQ(reports_under(answer, {SYS_renameat2}, names), 2u);
      EXPECT_EQ(reports_under(answer, {SYS_renameat2, SYS_unlinkat, SYS_rt_sigpending}, names), 2u);
    }
  }
}

// What a report can do without is left out. Those are on lists of calls that containers forbid.
TEST_F(InheritedFilterTest, OthersAreWritten) {
  std::vector<int> extras = {SYS_process_vm_readv, SYS_setpriority, SYS_uname, SYS_msync};
  EXPECT_EQ(reports_under(SECCOMP_RET_KILL_PROCESS, extras, true), 2u);
  EXPECT_NE(named_, "no") << "the tool that names is started without them, too";
  extras.push_back(SYS_fchmod);  // which that tool needs
  EXPECT_EQ(reports_under(SECCOMP_RET_KILL_PROCESS, extras), 2u);
  EXPECT_EQ(reports_under(SECCOMP_RET_ERRNO | EPERM, {SYS_mount, SYS_ptrace}, true), 2u);
  EXPECT_NE(named_, "no");
}

// ---- memlog asks.

// What was withheld is read from the ledger.
TEST_F(FilterTest, MemlogReadsTheLedger) {
  Ready process(keeping_a_ledger({"waits", "trap", "renderer", "prctl"}));
  process.write("aaa");
  EXPECT_EQ(expect_exit(memlog({"report", process.id()})).out,
            "filters-" + process.id() + "-snapshot.memlog\n");
  const Memlog snapshot = read_memlog(temp() + "/filters-" + process.id() + "-snapshot.memlog");
  EXPECT_EQ(snapshot.get("trigger"), "snapshot");
  EXPECT_HAS(memlog({"status", process.id()}).out, "USR1 forbidden");
  expect_exit(process.wait(), 5);
}

// Without a ledger it says why there is no report.
TEST_F(FilterTest, MemlogSaysWhy) {
  Ready process(traced(filters({"waits", "kill", "open", "seccomp"})));
  EXPECT_HAS(expect_exit(memlog({"report", process.id()}), 1).err,
             "has added a system call filter (seccomp)");
  expect_exit(process.wait(), 5);
}

// A filter that no function of libc has added is not seen by the library. memlog sees it, and
// leaves the process alone.
TEST_F(FilterTest, MemlogSeesWhatTheLibraryDoesNot) {
  for (const bool ledger : {false, true}) {
    const Words arguments = {"waits", "kill", "open", "raw"};
    Ready process(with(ledger ? keeping_a_ledger(arguments) : traced(filters(arguments)),
                       {{"MTRACE_EXIT_REPORT", "0"}}));
    const Result result = memlog({"report", process.id()});
    EXPECT_TRUE(result.exited(ledger ? 0 : 1)) << result.how() << result.err;
    EXPECT_TRUE(process.wait().exited(5)) << "unhurt";
  }
}

// A filter under which no signal handler returns, as that of sshd's children before the login. No
// signal is sent; and one that somebody else sends does not end the process.
TEST_F(FilterTest, ThatLetsNoHandlerReturn) {
  for (const std::string how : {"prctl", "seccomp", "tsync", "raw"}) {
    for (const std::string action : {"kill", "kill_thread", "errno"}) {
      SCOPED_TRACE(how + " " + action);
      Ready process(traced(filters({"waits", action, "sandbox", how})));
      EXPECT_HAS(expect_exit(memlog({"report", process.id()}), 1).err, "(seccomp) that ");
      if (how != "raw") {
        EXPECT_HAS(memlog({"status", process.id()}).out, "USR1 forbidden");
        process.send(SIGUSR1);
      }
      process.write("aaa");
      EXPECT_TRUE(process.wait().exited(5)) << "unhurt";
    }
  }
}

// Also when it is added between any two steps of memlog's.
TEST_F(FilterTest, ChildrenThatLockThemselvesUp) {
  Process process(traced(filters({"children", "kill", "sandbox", "-"})));
  for (int round = 0; round < 20; ++round) memlog({"report", "filters"});
  EXPECT_EQ(expect_exit(process.wait(), 5).out, "0 hurt\n");
}

// A stopped thread goes on by restart_syscall(2), at which the filter kills: sshd's, for one. Under
// memlog it goes on by the call that it was in. (The library writes no report under the filter.)
TEST_F(FilterTest, ThatKillsWhoGoesOnAfterAStop) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can read a filter";
  for (const bool library : {true, false}) {
    const Words argv = filters({"sleeps", "kill", "restart", "prctl"});
    Ready process(library ? traced(argv) : plain(argv));
    for (int round = 0; round < 12; ++round) {
      const Result result = library ? memlog({"report", process.id()})
                                    : memlog({round % 2 == 0 ? "attach" : "detach", process.id()});
      EXPECT_TRUE(result.exited(library ? 1 : 0)) << result.err;
    }
    expect_exit(process.wait(), 5);
  }
}

// The report at the end waits in the ledger, too.
TEST_F(FilterTest, TheLastStateStays) {
  const Result result = expect_exit(run(keeping_a_ledger({"prctl", "trap", "open"})), 5);
  const std::string ledger = temp() + "/filters-" + std::to_string(result.pid) + ".ledger";
  ASSERT_TRUE(fs::exists(ledger));
  const Result recovered = expect_exit(memlog({"recover", "--remove", ledger}));
  const Memlog last =
      read_memlog(temp() + "/filters-" + std::to_string(result.pid) + "-recovered.memlog");
  EXPECT_EQ(named_site_sums({last}), (Sites{{"site_after", {300, 1}}}));
}

}  // namespace
}  // namespace mtrace::test
