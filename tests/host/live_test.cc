// A running process seen through its ledger: memlog top, on a terminal and in a pipe, and memlog
// report where no signal gets through.
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "host_test.h"

namespace mtrace::test {
namespace {

namespace fs = std::filesystem;

class LiveTest : public HostTest {
 protected:
  Command target(const std::string& mode) const {
    Command command = traced({program("live_target"), mode});
    command.env["MTRACE_LEDGER"] = temp();
    return command;
  }
  Result memlog(std::vector<std::string> words) const {
    words.insert(words.begin(), memlog_tool());
    return run(plain(words));
  }
  static void keep(Process& process, const std::string& bytes) {
    process.write(bytes + "\n");
    process.read_until("done");
  }
  // A line of the listing, as words.
  static std::vector<std::string> row(const std::string& text, const std::string& site) {
    for (const std::string& line : lines_of(text)) {
      if (line.find(site) == std::string::npos) continue;
      std::istringstream words(line);
      return {std::istream_iterator<std::string>(words), {}};
    }
    return {};
  }
};

TEST_F(LiveTest, TopInAPipe) {
  Process process(target(""));
  process.read_until("go");
  keep(process, "1000");
  keep(process, "500");
  const std::string pid = std::to_string(process.pid());
  const Result once = expect_exit(memlog({"top", "--once", pid}));
  const std::vector<std::string> words = row(once.out, "site_kept");
  ASSERT_GE(words.size(), 7u) << once.out;
  EXPECT_EQ(words[0], "1500");
  EXPECT_EQ(words[1], "2");
  EXPECT_EQ(words[4], "1500") << "its share in the peak";
  EXPECT_EQ(words[5], "site_kept");
  EXPECT_EQ(words[6].find("live_target.c:"), 0u);
  const std::vector<std::string> stack =
      row(memlog({"top", "--once", "--group-by", "stack", pid}).out, "site_kept");
  ASSERT_GE(stack.size(), 8u);
  EXPECT_EQ(stack[0], "1500");
  EXPECT_EQ(stack[7], "main");
  EXPECT_HAS(once.out, "  kept by runtimes\n");
  EXPECT_HAS(memlog({"top", "--once", "--json", pid}).out, "_IO_file_doallocate");
  const Result status = memlog({"status", pid});
  EXPECT_HAS(status.out, "\n        ledger " + temp() + "/live_target-" + pid + ".ledger\n");
  struct stat ledger = {};
  ASSERT_EQ(stat((temp() + "/live_target-" + pid + ".ledger").c_str(), &ledger), 0);
  std::string plain_numbers = status.out;
  std::erase(plain_numbers, ',');
  EXPECT_HAS(plain_numbers, "\n        tracing takes " + std::to_string(ledger.st_blocks * 512) +
                                " bytes for its tables")
      << status.out;
  // Two looks, between which nothing happens.
  const Result twice =
      expect_exit(memlog({"top", "-b", "-n", "2", "-d", "50ms", "--limit", "1", pid}));
  const std::string second = twice.out.substr(twice.out.find("\n\n"));
  EXPECT_HAS(second, "  +0/s  0 allocs/s") << twice.out;
  // Nobody has noticed, and the program can be traced on.
  const Result result = expect_exit(process.wait());
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(logs_of(result.pid).size(), 1u);
}

TEST_F(LiveTest, TopNeedsALedger) {
  Process process(named({program("live_target")}));
  process.read_until("go");
  const std::string pid = std::to_string(process.pid());
  const Result result = expect_exit(memlog({"top", "--once", pid}), 1);
  EXPECT_EQ(result.err, "memlog: " + pid +
                            " (live_target) has no ledger: start it with memlog run, or with "
                            "MTRACE_LEDGER=/dev/shm/; memlog report " +
                            pid + " needs none\n");
}

TEST_F(LiveTest, TopOfWhatIsNotTracedSuggestsAttach) {
  Process process(plain({program("live_target")}));
  process.read_until("go");
  const std::string pid = std::to_string(process.pid());
  const Result result = expect_exit(memlog({"top", "--once", pid}), 1);
  EXPECT_EQ(result.err, "memlog: " + pid + " (live_target) is not traced; memlog attach " + pid +
                            ", or memlog top --attach " + pid + "\n");
}

TEST_F(LiveTest, PathOfTheLedgerIsShort) {
  const std::string in_slashes = temp() + "//";
  for (const char* place : {".", "./", "./here", in_slashes.c_str()}) {
    Command command = named({program("live_target")});
    command.directory = temp();
    command.env["MTRACE_LEDGER"] = place;
    Process process(std::move(command));
    process.read_until("go");
    const std::string pid = std::to_string(process.pid());
    const Result result = memlog({"status", pid});
    const std::string name = place[2] == 'h' ? "here" : "live_target-" + pid + ".ledger";
    EXPECT_HAS(result.out, "        ledger " + temp() + '/' + name + '\n');
  }
}

// A block that outlives the time is told of with its function, one that is freed before is not.
TEST_F(LiveTest, Expire) {
  Process process(target("busy"));
  process.read_until("go");
  keep(process, "4000");  // from before the watch
  const std::string pid = std::to_string(process.pid());
  Process watch(plain({memlog_tool(), "expire", "--after", "100ms", "--max-expired", "2", pid}));
  ASSERT_EQ(watch.read_line(),
            "live_target (" + pid + "): blocks from now on that outlive 0.100 s");
  keep(process, "1000");
  keep(process, "500");
  const Result result = expect_exit(watch.wait());
  EXPECT_HAS(result.out, "  site_kept  live_target.c:");
  EXPECT_HAS(result.out, "\n\nsite_kept  live_target.c:");
  EXPECT_HAS(result.out, "stopped at 2 expired blocks; 1 stack with blocks that outlived 0.100 s");
  EXPECT_HAS(result.out,
             "  may leak 2 blocks, 1500 bytes in 1 stack; expired 2, freed after that 0\n"
             "  allocations 2, frees 0\n");
  EXPECT_LACKS(result.out, "site_passing");
  process.send(SIGKILL);
}

// What stands on the screen of a terminal.
class Tmux {
 public:
  Tmux(Command base, const std::string& socket) : base_(std::move(base)), socket_(socket) {}
  ~Tmux() { words({"kill-server"}); }
  Tmux(const Tmux&) = delete;
  Tmux& operator=(const Tmux&) = delete;

  std::string words(const std::vector<std::string>& what) const {
    Command command = base_;
    command.argv = {"/usr/bin/tmux", "-S", socket_, "-f", "/dev/null", "-u"};
    command.argv.insert(command.argv.end(), what.begin(), what.end());
    const Result result = run(command);
    EXPECT_TRUE(result.exited(0)) << what[0] << ": " << result.how() << result.err;
    return result.out;
  }
  std::string screen() const { return words({"capture-pane", "-p"}); }
  void wait_for(const std::string& text) const {
    wait_until(text + " on the screen", [&] { return screen().find(text) != std::string::npos; });
  }
  void press(const std::string& key) const { words({"send-keys", key}); }

 private:
  Command base_;
  std::string socket_;
};

TEST_F(LiveTest, TopOnATerminal) {
  Process process(target(""));
  process.read_until("go");
  keep(process, "3145728");
  Command base = plain({});
  base.env["TERM"] = "xterm";
  const Tmux tmux(base, temp() + "/tmux");
  tmux.words({"new-session", "-d", "-x", "110", "-y", "20",
              memlog_tool() + " top --delay 100ms " + std::to_string(process.pid()) +
                  "; echo status $?; cat"});
  tmux.wait_for("site_kept ");
  EXPECT_EQ(row(tmux.screen(), "site_kept ")[1], "3.0");
  tmux.wait_for("q quit");
  tmux.press("Enter");
  tmux.wait_for("      site_kept  live_target.c:");
  tmux.press("m");
  tmux.wait_for("since mark +0");
  keep(process, "2097152");
  tmux.wait_for("since mark +2.0 MiB");
  EXPECT_EQ(row(tmux.screen(), "site_kept ")[1], "2.0");
  tmux.press("u");
  tmux.wait_for("live 5.0 MiB");
  tmux.press("g");
  tmux.wait_for("GROWTH/S");
  tmux.press("?");
  tmux.wait_for("q quits, any other key goes back");
  tmux.press("x");
  tmux.wait_for("GROWTH/S");
  tmux.press("/");
  tmux.wait_for("filter: _");
  tmux.words({"send-keys", "-l", "NO_SUCH("});
  tmux.wait_for("filter: NO_SUCH(_");
  tmux.press("Enter");
  tmux.wait_for("filter NO_SUCH(: missing )");
  EXPECT_HAS(tmux.screen(), "site_kept ") << "all, as before";
  tmux.words({"send-keys", "-l", "/no_such"});
  tmux.press("Enter");
  tmux.wait_for("filter: no_such   (0 of ");
  EXPECT_LACKS(tmux.screen(), "site_kept ");
  tmux.words({"send-keys", "-l", "/SITE_KEPX"});
  tmux.press("BSpace");
  tmux.words({"send-keys", "-l", "t"});
  tmux.press("Enter");
  tmux.wait_for("filter: SITE_KEPt   (1 of ");
  tmux.wait_for("site_kept ");
  tmux.press("Escape");
  tmux.wait_for("? help q quit");
  tmux.words({"resize-window", "-x", "60", "-y", "6"});
  wait_until("a smaller screen", [&] {
    const std::vector<std::string> lines = lines_of(tmux.screen());
    return lines.size() <= 6 && lines[0].find("live_target") == 0;
  });
  for (const std::string& line : lines_of(tmux.screen())) EXPECT_LE(line.size(), 60u) << line;
  tmux.press("q");
  tmux.wait_for("status 0");
  EXPECT_LACKS(tmux.screen(), "GROWTH/S") << "the screen is as it was";
  const Result result = expect_exit(process.wait());
  EXPECT_EQ(result.err, "");
}

// The signal is blocked in every thread: asked through the ledger, a process reports at its next
// allocation.
TEST_F(LiveTest, ReportOfOneThatBlocksTheSignal) {
  Process process(target("busy"));
  process.read_until("go");
  keep(process, "1000");
  const std::string pid = std::to_string(process.pid());
  for (const char* label : {"one", "two"}) {
    const Result result =
        expect_exit(memlog({"report", "--timeout", "600", "--label", label, pid}));
  }
  const std::vector<Memlog> logs = logs_of(process.pid());
  ASSERT_EQ(logs.size(), 2u);
  EXPECT_EQ(logs[0].get("trigger"), "request");
  EXPECT_EQ(logs[1].get("label"), "two");
  const std::string path = program("live_target");
  EXPECT_EQ(site_sums({logs[0]}, path, path).at("site_kept"), (Amount{1000, 1}));
  process.send(SIGKILL);
}

// One that does nothing cannot answer: a thread of it is borrowed.
TEST_F(LiveTest, ReportOfAnIdleOne) {
  Process process(target(""));
  process.read_until("go");
  keep(process, "1000");
  const Result result =
      expect_exit(memlog({"report", "--label", "idle", std::to_string(process.pid())}));
  process.close_input();
  process.wait();
  const std::vector<Memlog> logs = logs_of(process.pid());
  ASSERT_EQ(logs.size(), 2u) << "once for once";
  EXPECT_EQ(logs[0].get("label"), "idle");
  EXPECT_EQ(logs[1].get("trigger"), "exit");
  EXPECT_EQ(logs[1].get("label"), "");
  const std::string path = program("live_target");
  EXPECT_EQ(site_sums({logs[0]}, path, path).at("site_kept"), (Amount{1000, 1}));
}

// Keeps everybody else from tracing a process.
class LiveTracer {
 public:
  explicit LiveTracer(pid_t pid) {
    int ready[2];
    if (::pipe(ready) != 0 || ::pipe(end_) != 0) throw std::runtime_error("no pipe");
    child_ = ::fork();
    if (child_ == 0) {
      ::close(end_[1]);
      const char good = ::ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) == 0 ? 'y' : 'n';
      char byte = 0;
      if (::write(ready[1], &good, 1) == 1) (void)!::read(end_[0], &byte, 1);
      ::_exit(0);
    }
    ::close(ready[1]);
    ::close(end_[0]);
    char good = 'n';
    (void)!::read(ready[0], &good, 1);
    ::close(ready[0]);
    EXPECT_EQ(good, 'y');
  }
  ~LiveTracer() {
    ::close(end_[1]);
    ::waitpid(child_, nullptr, 0);
  }
  LiveTracer(const LiveTracer&) = delete;
  LiveTracer& operator=(const LiveTracer&) = delete;

 private:
  int end_[2];
  pid_t child_;
};

// Where that is not allowed either, its ledger is read, and the next report is none the poorer.
TEST_F(LiveTest, SnapshotOfAnIdleOneThatIsTraced) {
  Process process(target(""));
  process.read_until("go");
  keep(process, "1000");
  const std::string pid = std::to_string(process.pid());
  std::optional<LiveTracer> tracer(process.pid());
  const Result result = expect_exit(memlog({"report", "--label", "idle", pid}));
  EXPECT_EQ(result.out, "live_target-" + pid + "-snapshot.memlog\n");
  const Memlog snapshot = read_memlog(temp() + "/live_target-" + pid + "-snapshot.memlog");
  EXPECT_EQ(snapshot.get("trigger"), "snapshot");
  EXPECT_EQ(snapshot.get("label"), "idle");
  EXPECT_EQ(named_site_sums({snapshot}).at("site_kept"), (Amount{1000, 1}));
  EXPECT_EQ(logs_of(process.pid()).size(), 0u);
  tracer.reset();
  process.close_input();
  process.wait();
  const std::vector<Memlog> logs = logs_of(process.pid());
  ASSERT_EQ(logs.size(), 1u) << "what was asked for is not answered later";
  EXPECT_EQ(logs[0].get("trigger"), "exit");
  EXPECT_EQ(logs[0].get("label"), "");
  const std::string path = program("live_target");
  EXPECT_EQ(site_sums(logs, path, path).at("site_kept"), (Amount{1000, 1}));
}

}  // namespace
}  // namespace mtrace::test
