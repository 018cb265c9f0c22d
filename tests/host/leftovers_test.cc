// What is left behind when a program, memlog, or both are killed: nothing, or what the next run
// sweeps away; never what a living process needs, or what memlog recover can use.
#include <fmt/format.h>

#include "host_test.h"
#include "stepped_tool.h"

namespace mtrace::test {
namespace {

class LeftoversTest : public HostTest {
 protected:
  void SetUp() override {
    fs::create_directory(place());
    const int probe = ::open(out().c_str(), O_TMPFILE | O_WRONLY, 0600);
    unnamed_ = probe >= 0;
    if (unnamed_) ::close(probe);
  }
  // Where ledgers go.
  std::string place() const { return temp() + "/place"; }

  // Runs the program and kills it when it begins to write to a file in out(). False: it ended
  // first.
  bool kill_at_write(const Command& command) const {
    bool killed = false;
    run_stepwise(command, [&](const ToolCall& call) {
      if (call.number != SYS_write || call.made) return true;
      std::error_code error;
      const std::string file =
          fs::read_symlink(fmt::format("/proc/{}/fd/{}", call.pid, call.arguments[0]), error);
      killed = file.starts_with(out() + "/");
      if (killed) ::kill(call.pid, SIGKILL);
      return true;
    });
    return killed;
  }
  Command memlog_run(Words program_and_arguments) const {
    return plain(
        joined({memlog_tool(), "run", "--quiet", "--output", out(), "--"}, program_and_arguments),
        {{"XDG_RUNTIME_DIR", place()}, {"MTRACE_RESOLVER", "none"}});
  }
  // A run keeps a directory while some process of the machine cannot be looked at; the next one
  // asks again.
  void wait_until_swept() const {
    wait_until("nothing in " + place(), [&] {
      return names_in(place()).empty() ||
             (run(memlog_run({"/bin/true"})).exited(0) && names_in(place()).empty());
    });
  }
  bool unnamed_ = false;
};

TEST_F(LeftoversTest, ProgramKilledWhileItReports) {
  if (!unnamed_) GTEST_SKIP() << "the file system has no files without a name";
  ASSERT_TRUE(kill_at_write(traced({program("short_children"), "leaf"})));
  EXPECT_EQ(names_in(out()), Words());
}

TEST_F(LeftoversTest, ResolverKilledWhileItWrites) {
  if (!unnamed_) GTEST_SKIP() << "the file system has no files without a name";
  const Result result = run(traced({program("short_children"), "leaf"}));
  const std::string report = report_path("short_children", result.pid, 1);
  const std::string before = read_file(report);
  ASSERT_TRUE(kill_at_write(plain({memlog_tool(), "resolve", report})));
  EXPECT_EQ(names_in(out()).size(), 1u);
  EXPECT_EQ(read_file(report), before);
}

// A program that ends does not wait longer than MTRACE_EXIT_WAIT for names, and asks the resolver
// to end: at its first write, or when the file has the name under which it waits to be renamed.
TEST_F(LeftoversTest, ResolverAskedToEndAtAnyMoment) {
  for (const bool unnamed : {true, false}) {
    for (const long moment : {SYS_write, SYS_linkat, SYS_fchmod}) {
      if (unnamed ? !unnamed_ : moment == SYS_linkat) continue;
      SCOPED_TRACE(std::to_string(moment) + (unnamed ? "" : " named"));
      fs::remove_all(out());
      fs::create_directory(out());
      const Result result = run(traced({program("short_children"), "leaf"}));
      bool asked = false;
      const Result resolved = run_stepwise(
          plain({memlog_tool(), "resolve", report_path("short_children", result.pid, 1)}),
          [&](const ToolCall& call) {
            const bool is_file =
                call.number == SYS_openat && (call.arguments[2] & O_TMPFILE) == O_TMPFILE;
            if (call.number == moment && call.made && !asked) {
              asked = true;
              ::kill(call.pid, SIGTERM);
            }
            return unnamed || !is_file;
          });
      EXPECT_TRUE(asked);
      EXPECT_TRUE(WIFSIGNALED(resolved.status)) << resolved.how();
      EXPECT_EQ(names_in(out()).size(), 1u) << *names_in(out()).begin();
      EXPECT_EQ(logs_of(result.pid).size(), 1u);
    }
  }
}

TEST_F(LeftoversTest, OldTemporaryFilesAreSweptByTheNextRun) {
  const std::string stale = out() + "/.memlog-aBcDeF";
  const std::string stale_too = out() + "/.app-1-1.memlog.1f.tmp";
  const std::string fresh = out() + "/.memlog-gHiJkL";
  const std::string others = out() + "/.app-1-1.tmp";
  for (const std::string& file : {stale, stale_too, fresh, others}) write_file(file, "");
  for (const std::string& file : {stale, stale_too, others}) {
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(2));
  }
  expect_exit(run(memlog_run({"/bin/true"})));
  EXPECT_FALSE(fs::exists(stale));
  EXPECT_FALSE(fs::exists(stale_too));
  EXPECT_TRUE(fs::remove(fresh));
  EXPECT_TRUE(fs::remove(others));
}

TEST_F(LeftoversTest, RunOfAProgramThatASignalEnds) {
  Command command = memlog_run({"/bin/sh", "-c", "kill -TERM $$"});
  command.env["MTRACE_REPORT_ON_FATAL"] = "1";
  run(command);
  wait_until_swept();
}

// The directory is in the environment of what still runs; afterwards nobody needs it.
TEST_F(LeftoversTest, DirectoryOfABackgroundChild) {
  const std::string fifo = temp() + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const int end = ::open(fifo.c_str(), O_RDWR | O_CLOEXEC);  // or memlog's child waits to open it
  ASSERT_GE(end, 0);
  const Result result = expect_exit(run(memlog_run(
      {"/bin/sh", "-c",
       "(exec " + program("idle") + " poll <" + fifo + " >" + temp() + "/told 2>&1) & echo $!"})));
  const pid_t child = std::stoi(result.out);
  wait_until("the child", [&] {
    return fs::exists(temp() + "/told") && read_file(temp() + "/told").find("ready") == 0;
  });
  ASSERT_EQ(names_in(place()).size(), 1u);
  const std::string directory = place() + "/" + *names_in(place()).begin();
  const Words ledger = names_in(directory);
  EXPECT_EQ(ledger.size(), 1u);
  // It would make its ledger there if it had none yet.
  for (const std::string& file : ledger) fs::rename(directory + "/" + file, temp() + "/ledger");
  expect_exit(run(memlog_run({"/bin/true"})));
  EXPECT_TRUE(fs::exists(directory)) << "a living process may need it";
  fs::rename(temp() + "/ledger", directory + "/" + *ledger.begin());
  expect_exit(run(memlog_run({"/bin/true"})));
  EXPECT_EQ(names_in(directory), ledger);
  ::kill(child, SIGTERM);
  wait_until("its end", [&] {
    const char state = process_state(child);
    return state == 0 || state == 'Z';
  });
  ::close(end);
  // Killed: its last state is kept for memlog recover.
  expect_exit(run(memlog_run({"/bin/true"})));
  EXPECT_EQ(names_in(directory), ledger);
  expect_exit(memlog({"recover", "--raw", "--remove", "-o", temp() + "/state",
                      directory + "/" + *ledger.begin()}));
  wait_until_swept();
}

// It cannot name the directory, though it shows no environment, as in the middle of an exec. It is
// younger than the directory by more than their clocks may differ; the sleep is the least.
TEST_F(LeftoversTest, DirectoryBesideAProcessWithoutAnEnvironment) {
  const Result result = expect_exit(
      run(memlog_run({"/bin/sh", "-c",
                      "sleep 0.2; env -i sleep 1000 >/dev/null 2>&1 & "
                      "while [ -n \"$(tr -d '\\0' </proc/$!/environ)\" ]; do :; done; echo $!"})));
  wait_until_swept();
  ::kill(std::stoi(result.out), SIGKILL);
}

// The library makes the file first, and its header last.
TEST_F(LeftoversTest, ALedgerThatHasNotBegun) {
  const std::string file = place() + "/other-1.ledger";
  for (const size_t size : {size_t{0}, size_t{1} << 20}) {
    write_file(file, std::string(size, '\0'));
    Command command = memlog_run({"/bin/true"});
    command.argv.insert(command.argv.begin() + 2, {"--ledger", place()});
    EXPECT_EQ(expect_exit(run(command)).err, "");
    EXPECT_TRUE(fs::exists(file));
  }
  // In the directory of the run's own it goes, unless a process has it.
  for (const bool used : {false, true}) {
    const std::string script = std::string("exec 9>$MTRACE_LEDGER/other-1.ledger; ") +
                               (used ? "(exec sleep 100) >/dev/null 2>&1 & echo $!" : "");
    const Result result = expect_exit(run(memlog_run({"/bin/sh", "-c", script})));
    EXPECT_EQ(result.err, "");
    bool is_there = false;
    for (const std::string& name : names_in(place())) {
      is_there |= fs::exists(place() + "/" + name + "/other-1.ledger");
    }
    EXPECT_EQ(is_there, used);
    if (used) ::kill(std::stoi(result.out), SIGKILL);
  }
}

// Whoever killed a program need not know where its ledger lies. The ledger of a process that runs,
// or that a memlog run will look at, is not offered.
TEST_F(LeftoversTest, RecoverListsWhatIsLeftAndStatusRemovesIt) {
  // In a /dev/shm of its own: other tests have ledgers there.
  const Words alone = {"/usr/bin/unshare",
                       "--mount",
                       "/bin/sh",
                       "-c",
                       "mount -t tmpfs none /dev/shm && exec \"$@\"",
                       "sh"};
  Words words = alone;
  words.emplace_back("/bin/true");
  if (!run(plain(words)).exited(0)) GTEST_SKIP() << "needs mount namespaces";

  const auto started = [&](const std::string& ledger) {
    return std::make_unique<Process>(
        traced({program("idle"), "read"}, {{"MTRACE_LEDGER", ledger}}));
  };
  const std::string elsewhere = place() + "/mtrace-abcdef";
  fs::create_directory(elsewhere);
  std::vector<std::unique_ptr<Process>> killed;
  for (const std::string& directory : {place(), elsewhere, out()}) {
    killed.push_back(started(directory + "/"));
    killed.back()->read_until("ready");
    killed.back()->send(SIGKILL);
    killed.back()->wait();
  }
  const auto living = started(place() + "/");
  living->read_until("ready");
  const auto name = [](const Process& process) { return "/idle-" + process.id() + ".ledger"; };
  const auto among_these = [&](const Words& arguments) {
    Words argv = alone;
    argv.push_back(memlog_tool());
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    Command command = plain(argv);
    command.directory = out();
    command.env["XDG_RUNTIME_DIR"] = place();
    return command;
  };
  Command list = among_these({"recover"});
  const Result listed = expect_exit(run(list));
  EXPECT_HAS(listed.out, place() + name(*killed[0]) + "\n");
  EXPECT_HAS(listed.out, elsewhere + name(*killed[1]) + "\n");
  EXPECT_HAS(listed.out, "." + name(*killed[2]) + "\n");
  EXPECT_HAS(listed.out, killed[0]->id() + " (idle): ");
  EXPECT_LACKS(listed.out, name(*living));

  EXPECT_EQ(
      expect_exit(run(among_these({"status", "--clean"}))).out,
      "removed " + place() + name(*killed[0]) + "\nremoved " + elsewhere + name(*killed[1]) + "\n");
  EXPECT_EQ(names_in(place()), (Words{name(*living).substr(1)}));
  EXPECT_TRUE(fs::remove(out() + name(*killed[2])));
  list.directory = place();
  EXPECT_LACKS(run(list).out, place());
}

// memlog holds its directory also while nothing is in it.
TEST_F(LeftoversTest, DirectoryOfAnotherRun) {
  Process other(
      memlog_run({"/usr/bin/env", "-u", "MTRACE_LEDGER", "/bin/sh", "-c", "echo ready; read x"}),
      "ready");
  ASSERT_EQ(names_in(place()).size(), 1u);
  const std::string directory = place() + "/" + *names_in(place()).begin();
  expect_exit(run(memlog_run({"/bin/true"})));
  EXPECT_TRUE(fs::exists(directory));
  other.wait();
  wait_until_swept();
}

}  // namespace
}  // namespace mtrace::test
