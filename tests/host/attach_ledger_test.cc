// The ledger of a process that memlog attaches to: there by default, also after a detach; and the
// commands that attach by themselves.
#include "host_test.h"

namespace mtrace::test {
namespace {

class AttachLedgerTest : public HostTest {
 protected:
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
  void work(Ready& process, const std::string& letters) const {
    process.say(letters + "p", "told");
  }
};

TEST_F(AttachLedgerTest, WorksAfterDetachAndAttachAgain) {
  Ready process(plain({program("attached"), "sites"}));
  // Once without a file, whose tables give way to a file, and then again and again with it.
  for (const char* place : {"none", "/dev/shm", "/dev/shm"}) {
    expect_exit(memlog({"attach", "--ledger", place, process.id()}));
    work(process, "aaa");
    const bool file = std::string(place) != "none";
    EXPECT_EQ(fs::exists(ledger(process.pid())), file);
    if (file) {
      EXPECT_EQ(live_of("site_attached", process.pid()), "963");
    }
    expect_exit(memlog({"report", process.id()}));
    expect_exit(memlog({"detach", process.id()}));
    work(process, "aa");
  }
  process.write("q");
  expect_exit(process.wait());
  EXPECT_FALSE(fs::exists(ledger(process.pid())));
  const std::string file = program("attached");
  for (const auto& [key, logs] : all_logs()) {
    Sites sums = site_sums({logs[0]}, file, file);
    EXPECT_EQ(sums["site_attached"], (Amount{963, 3})) << key;
  }
}

// Threads that hold slots of the old tables go on in the new ones.
TEST_F(AttachLedgerTest, BusyThreadsGetAFileAtTheSecondAttach) {
  Ready process(plain({program("attached"), "busy"}));
  for (const char* place : {"none", "/dev/shm", "none", "/dev/shm"}) {
    expect_exit(memlog({"attach", "--ledger", place, process.id()}));
    expect_exit(memlog({"report", process.id()}));
    expect_exit(memlog({"detach", process.id()}));
  }
  EXPECT_EQ(lines_of(expect_exit(process.wait()).out).back(), "done");
}

TEST_F(AttachLedgerTest, ItsDirectoryIsMade) {
  Ready process(plain({program("attached"), "sites"}));
  expect_exit(memlog({"attach", "--ledger", temp() + "/new", process.id()}));
  EXPECT_TRUE(fs::exists(temp() + "/new/attached-" + process.id() + ".ledger"));
  process.write("q");
  expect_exit(process.wait());
  EXPECT_TRUE(fs::is_empty(temp() + "/new"));
}

// What was allocated before is no free memory of the heap.
TEST_F(AttachLedgerTest, MapKnowsThatItDoesNotKnowEarlierBlocks) {
  Ready process(plain({program("attached"), "sites"}));
  const std::string text = expect_exit(memlog({"map", "--attach", process.id()})).out;
  EXPECT_HAS(text, "some blocks are not known: memlog attached after the program had allocated\n");
  EXPECT_HAS(text, " that are known\n");
  for (const char* claim : {", free ", "malloc_trim", "without a live block"}) {
    EXPECT_LACKS(text, claim);
  }
  process.write("q");
  expect_exit(process.wait());
}

TEST_F(AttachLedgerTest, TopAttachesAndDetaches) {
  Ready process(plain({program("attached"), "sites"}));
  Process top(tool({"top", "--attach", "--batch", "--delay", "50ms", process.id()}));
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
  EXPECT_TRUE(
      result.err.starts_with("memlog: attached to " + process.id() + " (attached), stopped for "))
      << result.err;
  EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
  const Result status = memlog({"status", process.id()});
  EXPECT_HAS((status.out + status.err), "memlog detach") << status.out;
}

// A command that reads never changes a process that is not traced, nor one that was detached.
TEST_F(AttachLedgerTest, NoCommandThatReadsAttaches) {
  Ready process(plain({program("attached"), "sites"}));
  const std::string subject = "memlog: " + process.id() + " (attached) is not traced";
  const auto refuses = [&](const std::string& state) {
    for (const Words& words : std::vector<Words>{{"report"},
                                                 {"top", "--once"},
                                                 {"map"},
                                                 {"expire", "--max-stacks", "1"},
                                                 {"unreachable"}}) {
      Words all = words;
      all.push_back(process.id());
      const Result result = memlog(all);
      EXPECT_TRUE(result.exited(1)) << words[0] << result.how();
      EXPECT_EQ(result.out, "") << words[0];
      EXPECT_EQ(result.err, subject + state + "; memlog attach " + process.id() + ", or memlog " +
                                words[0] + " --attach " + process.id() + "\n");
    }
  };
  refuses("");
  EXPECT_LACKS(read_file("/proc/" + process.id() + "/maps"), "libmtrace");
  expect_exit(memlog({"attach", process.id()}));
  expect_exit(memlog({"detach", process.id()}));
  refuses(" any more");
  process.write("q");
  expect_exit(process.wait());
}

TEST_F(AttachLedgerTest, ReportOfANameAsksThoseThatAreTraced) {
  const std::string name = "named" + std::to_string(::getpid());  // no other test's process has it
  const std::string file = temp() + "/" + name;
  fs::copy_file(program("attached"), file);
  Ready other(plain({file, "sites"}));
  Ready process(plain({file, "sites"}));
  expect_exit(memlog({"attach", process.id()}));
  const Result result = expect_exit(memlog({"report", name}));
  EXPECT_EQ(lines_of(result.out).size(), 1u) << result.out;
  EXPECT_TRUE(result.err.starts_with("memlog: " + name + ": left alone what is not traced: "))
      << result.err;
  EXPECT_HAS(result.err, other.id());
  EXPECT_LACKS(read_file("/proc/" + other.id() + "/maps"), "libmtrace");
  process.write("q");  // and with it its ledger in /dev/shm
  expect_exit(process.wait());
}

TEST_F(AttachLedgerTest, DetachRemovesTheLedger) {
  Ready process(plain({program("attached"), "sites"}));
  expect_exit(memlog({"attach", process.id()}));
  expect_exit(memlog({"detach", "--keep-ledger", process.id()}));
  EXPECT_TRUE(fs::exists(ledger(process.pid())));
  expect_exit(memlog({"attach", process.id()}));
  expect_exit(memlog({"detach", process.id()}));
  EXPECT_FALSE(fs::exists(ledger(process.pid())));
  process.end(SIGKILL);
  EXPECT_FALSE(fs::exists(ledger(process.pid())));
}

TEST_F(AttachLedgerTest, ReportAttachesWhenToldTo) {
  Ready process(plain({program("attached"), "sites"}));
  work(process, "a");
  for (int round = 0; round < 2; ++round) {
    const Result first = expect_exit(memlog({"report", "--attach", process.id()}));
    EXPECT_TRUE(
        first.err.starts_with("memlog: attached to " + process.id() + " (attached), stopped for "))
        << first.err;
    work(process, "aa");
    EXPECT_EQ(expect_exit(memlog({"report", process.id()})).err, "");
    expect_exit(memlog({"detach", process.id()}));
  }
  const std::string file = program("attached");
  for (const auto& [key, logs] : all_logs()) {
    EXPECT_EQ(site_sums(logs, file, file)["site_attached"], (Amount{642, 2})) << key;
  }
}

}  // namespace
}  // namespace mtrace::test
