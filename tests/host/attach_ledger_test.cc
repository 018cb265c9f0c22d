// The ledger of a process that memlog attaches to: there by default, also after a detach; and the
// commands that attach by themselves.
#include <signal.h>

#include <filesystem>
#include <string>

#include "host_test.h"

namespace mtrace::test {
namespace {

namespace fs = std::filesystem;

class AttachLedgerTest : public HostTest {
 protected:
  Command command(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), memlog_tool());
    Command command = plain(arguments);
    command.directory = out();
    command.env["MTRACE_RESOLVER"] = "none";
    return command;
  }
  Result memlog(std::vector<std::string> arguments) const { return run(command(arguments)); }
  static std::string ledger(pid_t pid) {
    return "/dev/shm/attached-" + std::to_string(pid) + ".ledger";
  }
  // The first number of the row of a site in what memlog top --once prints; empty: no such row.
  std::string live_of(const std::string& site, pid_t pid) const {
    const Result top = expect_exit(memlog({"top", "--once", std::to_string(pid)}));
    EXPECT_EQ(top.err, "");
    for (const std::string& line : lines_of(top.out)) {
      if (line.find(site) == std::string::npos) continue;
      const size_t begin = line.find_first_not_of(' ');
      return line.substr(begin, line.find(' ', begin) - begin);
    }
    return {};
  }
  void work(Process& process, const std::string& letters) const {
    process.write(letters + "p");
    process.read_until("told");
  }
};

TEST_F(AttachLedgerTest, IsThereByDefaultAndGoesWithTheProcess) {
  Process process(plain({program("attached"), "sites"}));
  process.read_until("ready");
  const std::string pid = std::to_string(process.pid());
  expect_exit(memlog({"attach", pid}));
  EXPECT_TRUE(fs::exists(ledger(process.pid())));
  work(process, "aa");
  EXPECT_EQ(live_of("site_attached", process.pid()), "642");
  process.write("q");
  expect_exit(process.wait());
  EXPECT_FALSE(fs::exists(ledger(process.pid())));
}

TEST_F(AttachLedgerTest, WorksAfterDetachAndAttachAgain) {
  Process process(plain({program("attached"), "sites"}));
  process.read_until("ready");
  const std::string pid = std::to_string(process.pid());
  // Once without a file, whose tables give way to a file, and then again and again with it.
  for (const char* place : {"none", "/dev/shm", "/dev/shm"}) {
    expect_exit(memlog({"attach", "--ledger", place, pid}));
    work(process, "aaa");
    const bool file = std::string(place) != "none";
    EXPECT_EQ(fs::exists(ledger(process.pid())), file);
    if (file) {
      EXPECT_EQ(live_of("site_attached", process.pid()), "963");
    }
    const Result reported = expect_exit(memlog({"report", pid}));
    expect_exit(memlog({"detach", pid}));
    work(process, "aa");
  }
  process.write("q");
  expect_exit(process.wait());
  EXPECT_FALSE(fs::exists(ledger(process.pid())));
  const std::string file = program("attached");
  for (const auto& [key, logs] : all_logs()) {
    std::map<std::string, Amount> sums = site_sums({logs[0]}, file, file);
    EXPECT_EQ(sums["site_attached"], (Amount{963, 3})) << key;
  }
}

// Threads that hold slots of the old tables go on in the new ones.
TEST_F(AttachLedgerTest, BusyThreadsGetAFileAtTheSecondAttach) {
  Process process(plain({program("attached"), "busy"}));
  process.read_until("ready");
  const std::string pid = std::to_string(process.pid());
  for (const char* place : {"none", "/dev/shm", "none", "/dev/shm"}) {
    const Result attached = expect_exit(memlog({"attach", "--ledger", place, pid}));
    const Result reported = expect_exit(memlog({"report", pid}));
    expect_exit(memlog({"detach", pid}));
  }
  process.close_input();
  const Result result = expect_exit(process.wait());
  EXPECT_EQ(lines_of(result.out).back(), "done");
}

TEST_F(AttachLedgerTest, ItsDirectoryIsMade) {
  Process process(plain({program("attached"), "sites"}));
  process.read_until("ready");
  const std::string pid = std::to_string(process.pid());
  const Result result = expect_exit(memlog({"attach", "--ledger", temp() + "/new", pid}));
  EXPECT_TRUE(fs::exists(temp() + "/new/attached-" + pid + ".ledger"));
  process.write("q");
  expect_exit(process.wait());
  EXPECT_TRUE(fs::is_empty(temp() + "/new"));
}

TEST_F(AttachLedgerTest, TopAttachesAndDetaches) {
  Process process(plain({program("attached"), "sites"}));
  process.read_until("ready");
  const std::string pid = std::to_string(process.pid());
  Process top(command({"top", "--attach", "--batch", "--delay", "50ms", pid}));
  ASSERT_TRUE(top.read_line().has_value());
  work(process, "aa");
  while (const auto line = top.read_line()) {
    if (line->find("site_attached") == std::string::npos) continue;
    EXPECT_NE(line->find(" 642 "), std::string::npos) << *line;
    break;
  }
  top.send(SIGINT);
  while (top.read_line()) continue;
  const Result result = expect_exit(top.wait());
  EXPECT_TRUE(result.err.starts_with("memlog: attached to " + pid + " (attached), stopped for "))
      << result.err;
  EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
  const Result status = memlog({"status", pid});
  EXPECT_HAS((status.out + status.err), "memlog detach") << status.out;
}

// A command that reads never changes a process that is not traced, nor one that was detached.
TEST_F(AttachLedgerTest, NoCommandThatReadsAttaches) {
  Process process(plain({program("attached"), "sites"}));
  process.read_until("ready");
  const std::string pid = std::to_string(process.pid());
  const std::string subject = "memlog: " + pid + " (attached) is not traced";
  const auto refuses = [&](const std::string& state) {
    for (const std::vector<std::string>& words :
         std::vector<std::vector<std::string>>{{"report"},
                                               {"top", "--once"},
                                               {"map"},
                                               {"expire", "--max-stacks", "1"},
                                               {"unreachable"}}) {
      std::vector<std::string> all = words;
      all.push_back(pid);
      const Result result = memlog(all);
      EXPECT_TRUE(result.exited(1)) << words[0] << result.how();
      EXPECT_EQ(result.out, "") << words[0];
      EXPECT_EQ(result.err, subject + state + "; memlog attach " + pid + ", or memlog " + words[0] +
                                " --attach " + pid + "\n");
    }
  };
  refuses("");
  EXPECT_LACKS(read_file("/proc/" + pid + "/maps"), "libmtrace");
  expect_exit(memlog({"attach", pid}));
  expect_exit(memlog({"detach", pid}));
  refuses(" any more");
  process.write("q");
  expect_exit(process.wait());
}

TEST_F(AttachLedgerTest, ReportOfANameAsksThoseThatAreTraced) {
  const std::string name = "named" + std::to_string(::getpid());  // no other test's process has it
  const std::string file = temp() + "/" + name;
  fs::copy_file(program("attached"), file);
  Process other(plain({file, "sites"}));
  other.read_until("ready");
  Process process(plain({file, "sites"}));
  process.read_until("ready");
  expect_exit(memlog({"attach", std::to_string(process.pid())}));
  const Result result = expect_exit(memlog({"report", name}));
  EXPECT_EQ(lines_of(result.out).size(), 1u) << result.out;
  EXPECT_TRUE(result.err.starts_with("memlog: " + name + ": left alone what is not traced: "))
      << result.err;
  EXPECT_HAS(result.err, std::to_string(other.pid()));
  EXPECT_LACKS(read_file("/proc/" + std::to_string(other.pid()) + "/maps"), "libmtrace");
  process.write("q");  // and with it its ledger in /dev/shm
  expect_exit(process.wait());
}

TEST_F(AttachLedgerTest, DetachRemovesTheLedger) {
  Process process(plain({program("attached"), "sites"}));
  process.read_until("ready");
  const std::string pid = std::to_string(process.pid());
  expect_exit(memlog({"attach", pid}));
  expect_exit(memlog({"detach", "--keep-ledger", pid}));
  EXPECT_TRUE(fs::exists(ledger(process.pid())));
  expect_exit(memlog({"attach", pid}));
  expect_exit(memlog({"detach", pid}));
  EXPECT_FALSE(fs::exists(ledger(process.pid())));
  process.send(SIGKILL);
  process.wait();
  EXPECT_FALSE(fs::exists(ledger(process.pid())));
}

TEST_F(AttachLedgerTest, ReportAttachesWhenToldTo) {
  Process process(plain({program("attached"), "sites"}));
  process.read_until("ready");
  const std::string pid = std::to_string(process.pid());
  work(process, "a");
  for (int round = 0; round < 2; ++round) {
    const Result first = expect_exit(memlog({"report", "--attach", pid}));
    EXPECT_TRUE(first.err.starts_with("memlog: attached to " + pid + " (attached), stopped for "))
        << first.err;
    work(process, "aa");
    const Result second = expect_exit(memlog({"report", pid}));
    EXPECT_EQ(second.err, "");
    expect_exit(memlog({"detach", pid}));
  }
  const std::string file = program("attached");
  for (const auto& [key, logs] : all_logs()) {
    EXPECT_EQ(site_sums(logs, file, file)["site_attached"], (Amount{642, 2})) << key;
  }
}

}  // namespace
}  // namespace mtrace::test
