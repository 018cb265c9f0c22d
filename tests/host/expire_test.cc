// memlog expire on a process that was started without the library.
#include "host_test.h"

namespace mtrace::test {
namespace {

class ExpireTest : public HostTest {
 protected:
  // The next line that holds `text`; empty: the output has ended.
  static std::string line_with(Process& process, const std::string& text) {
    while (const auto line = process.read_line()) {
      if (line->find(text) != std::string::npos) return *line;
    }
    return {};
  }
  std::string ledger(pid_t pid) const {
    return "/dev/shm/attached-" + std::to_string(pid) + ".ledger";
  }
};

TEST_F(ExpireTest, AttachesToWhatIsNotTraced) {
  Ready process(plain({program("attached"), "sites"}));
  for (int round = 0; round < 2; ++round) {
    Process expire(plain({memlog_tool(), "expire", "--attach", "--after", "100ms", "--max-stacks",
                          "1", "--format", "json", process.id()}));
    EXPECT_NE(line_with(expire, "\"begin\""), "");
    process.say("ap", "told");
    const std::string end = line_with(expire, "\"event\":\"stack\"");
    EXPECT_HAS(end, "\"may_leak_blocks\":1,\"may_leak_bytes\":321,\"expired_blocks\":1");
    EXPECT_HAS(end, "{\"function\":\"site_attached\",\"file\":\"attached.cc\",\"line\":");
    expect_exit(expire.wait());
    const Result status = memlog({"status", process.id()});
    EXPECT_HAS((status.out + status.err), "memlog detach") << status.out << status.err;
    EXPECT_FALSE(fs::exists(ledger(process.pid())));
  }
  process.write("q");
  expect_exit(process.wait());
  EXPECT_FALSE(fs::exists(ledger(process.pid())));
}

// One block that expires and is freed: least, mean and most are its own. Where the process has
// reported meanwhile, least and most are not known.
TEST_F(ExpireTest, LiveTimes) {
  Ready process(plain({program("attached"), "sites"}));
  for (const bool reported : {false, true}) {
    Process expire(plain({memlog_tool(), "expire", "--attach", "--after", "100ms", "--format",
                          "json", process.id()}));
    EXPECT_NE(line_with(expire, "\"begin\""), "");
    process.write("a");
    EXPECT_NE(line_with(expire, "\"expired_blocks\":1,"), "");
    if (reported) {
      expect_exit(memlog({"report", process.id()}));
    }
    process.write("d");
    EXPECT_NE(line_with(expire, "\"expired_freed_blocks\":1,"), "");
    expire.send(SIGINT);
    EXPECT_NE(line_with(expire, "\"why\":\"interrupted\""), "");
    const std::string line = line_with(expire, "\"event\":\"stack\"");
    const std::string start = "\"allocated_blocks\":1,\"freed_blocks\":1,\"lifetime_min_ms\":";
    const size_t at = line.find(start);
    ASSERT_NE(at, std::string::npos) << line;
    if (reported) {
      EXPECT_EQ(line.find("null,\"lifetime_mean_ms\":", at), at + start.size()) << line;
      EXPECT_HAS(line, ",\"lifetime_max_ms\":null,");
    } else {
      const std::string ms = std::to_string(std::stoul(line.substr(at + start.size())));
      EXPECT_GE(std::stoul(ms), 100u);
      EXPECT_HAS(line,
                 start + ms + ",\"lifetime_mean_ms\":" + ms + ",\"lifetime_max_ms\":" + ms + ",");
    }
    expect_exit(expire.wait());
  }
  process.write("q");
  expect_exit(process.wait());
}

}  // namespace
}  // namespace mtrace::test
