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
    const Result top = memlog({"top", "--once", std::to_string(pid)});
    EXPECT_TRUE(top.exited(0)) << top.how() << top.err;
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
  EXPECT_TRUE(memlog({"attach", pid}).exited(0));
  EXPECT_TRUE(fs::exists(ledger(process.pid())));
  work(process, "aa");
  EXPECT_EQ(live_of("site_attached", process.pid()), "642");
  process.write("q");
  EXPECT_TRUE(process.wait().exited(0));
  EXPECT_FALSE(fs::exists(ledger(process.pid())));
}

TEST_F(AttachLedgerTest, WorksAfterDetachAndAttachAgain) {
  Process process(plain({program("attached"), "sites"}));
  process.read_until("ready");
  const std::string pid = std::to_string(process.pid());
  // Once without a file, whose tables give way to a file, and then again and again with it.
  for (const char* place : {"none", "/dev/shm", "/dev/shm"}) {
    EXPECT_TRUE(memlog({"attach", "--ledger", place, pid}).exited(0));
    work(process, "aaa");
    const bool file = std::string(place) != "none";
    EXPECT_EQ(fs::exists(ledger(process.pid())), file);
    if (file) {
      EXPECT_EQ(live_of("site_attached", process.pid()), "963");
    }
    const Result reported = memlog({"report", pid});
    EXPECT_TRUE(reported.exited(0)) << reported.err;
    EXPECT_TRUE(memlog({"detach", pid}).exited(0));
    work(process, "aa");
  }
  process.write("q");
  EXPECT_TRUE(process.wait().exited(0));
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
    const Result attached = memlog({"attach", "--ledger", place, pid});
    EXPECT_TRUE(attached.exited(0)) << attached.err;
    const Result reported = memlog({"report", pid});
    EXPECT_TRUE(reported.exited(0)) << reported.err;
    EXPECT_TRUE(memlog({"detach", pid}).exited(0));
  }
  process.close_input();
  const Result result = process.wait();
  EXPECT_TRUE(result.exited(0)) << result.how() << result.out;
  EXPECT_EQ(lines_of(result.out).back(), "done");
}

TEST_F(AttachLedgerTest, ItsDirectoryIsMade) {
  Process process(plain({program("attached"), "sites"}));
  process.read_until("ready");
  const std::string pid = std::to_string(process.pid());
  const Result result = memlog({"attach", "--ledger", temp() + "/new", pid});
  EXPECT_TRUE(result.exited(0)) << result.err;
  EXPECT_TRUE(fs::exists(temp() + "/new/attached-" + pid + ".ledger"));
  process.write("q");
  EXPECT_TRUE(process.wait().exited(0));
  EXPECT_TRUE(fs::is_empty(temp() + "/new"));
}

TEST_F(AttachLedgerTest, TopAttachesAndDetaches) {
  Process process(plain({program("attached"), "sites"}));
  process.read_until("ready");
  const std::string pid = std::to_string(process.pid());
  const Result refused = memlog({"top", "--no-attach", "--once", pid});
  EXPECT_TRUE(refused.exited(1)) << refused.how();
  EXPECT_NE(refused.err.find("is not traced"), std::string::npos) << refused.err;
  EXPECT_EQ(read_file("/proc/" + pid + "/maps").find("libmtrace"), std::string::npos);

  Process top(command({"top", "--batch", "--delay", "50ms", pid}));
  ASSERT_TRUE(top.read_line().has_value());
  work(process, "aa");
  while (const auto line = top.read_line()) {
    if (line->find("site_attached") == std::string::npos) continue;
    EXPECT_NE(line->find(" 642 "), std::string::npos) << *line;
    break;
  }
  top.send(SIGINT);
  while (top.read_line()) continue;
  const Result result = top.wait();
  EXPECT_TRUE(result.exited(0)) << result.how();
  EXPECT_TRUE(result.err.starts_with("memlog: attached to " + pid + " (attached), stopped for "))
      << result.err;
  EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
  const Result status = memlog({"status", pid});
  EXPECT_NE((status.out + status.err).find("memlog detach"), std::string::npos) << status.out;
}

TEST_F(AttachLedgerTest, ReportAttachesUnlessToldNotTo) {
  Process process(plain({program("attached"), "sites"}));
  process.read_until("ready");
  const std::string pid = std::to_string(process.pid());
  const Result refused = memlog({"report", "--no-attach", pid});
  EXPECT_TRUE(refused.exited(1)) << refused.how();
  EXPECT_NE(refused.err.find("is not traced: libmtrace.so is not mapped"), std::string::npos)
      << refused.err;
  work(process, "a");
  for (int round = 0; round < 2; ++round) {
    const Result first = memlog({"report", pid});
    EXPECT_TRUE(first.exited(0)) << first.err;
    EXPECT_TRUE(first.err.starts_with("memlog: attached to " + pid + " (attached), stopped for "))
        << first.err;
    work(process, "aa");
    const Result second = memlog({"report", pid});
    EXPECT_TRUE(second.exited(0)) << second.err;
    EXPECT_EQ(second.err, "");
    EXPECT_TRUE(memlog({"detach", pid}).exited(0));
  }
  const std::string file = program("attached");
  for (const auto& [key, logs] : all_logs()) {
    EXPECT_EQ(site_sums(logs, file, file)["site_attached"], (Amount{642, 2})) << key;
  }
}

}  // namespace
}  // namespace mtrace::test
