// memlog expire on a process that was started without the library.
#include <signal.h>

#include <filesystem>
#include <string>

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
  Process process(plain({program("attached"), "sites"}));
  process.read_until("ready");
  for (int round = 0; round < 2; ++round) {
    Process expire(plain({memlog_tool(), "expire", "--attach", "--after", "100ms", "--max-stacks",
                          "1", "--format", "json", std::to_string(process.pid())}));
    EXPECT_NE(line_with(expire, "\"begin\""), "");
    process.write("ap");
    process.read_until("told");
    const std::string end = line_with(expire, "\"event\":\"stack\"");
    EXPECT_NE(end.find("\"may_leak_blocks\":1,\"may_leak_bytes\":321,\"expired_blocks\":1"),
              std::string::npos)
        << end;
    EXPECT_NE(end.find("{\"function\":\"site_attached\",\"file\":\"attached.cc\",\"line\":"),
              std::string::npos)
        << end;
    EXPECT_TRUE(expire.wait().exited(0));
    const Result status = run(plain({memlog_tool(), "status", std::to_string(process.pid())}));
    EXPECT_NE((status.out + status.err).find("memlog detach"), std::string::npos)
        << status.out << status.err;
    EXPECT_FALSE(std::filesystem::exists(ledger(process.pid())));
  }
  process.write("q");
  EXPECT_TRUE(process.wait().exited(0));
  EXPECT_FALSE(std::filesystem::exists(ledger(process.pid())));
}

// One block that expires and is freed: least, mean and most are its own. Where the process has
// reported meanwhile, least and most are not known.
TEST_F(ExpireTest, LiveTimes) {
  Process process(plain({program("attached"), "sites"}));
  process.read_until("ready");
  for (const bool reported : {false, true}) {
    Process expire(plain({memlog_tool(), "expire", "--attach", "--after", "100ms", "--format",
                          "json", std::to_string(process.pid())}));
    EXPECT_NE(line_with(expire, "\"begin\""), "");
    process.write("a");
    EXPECT_NE(line_with(expire, "\"expired_blocks\":1,"), "");
    if (reported) {
      Command report = plain({memlog_tool(), "report", std::to_string(process.pid())});
      report.directory = out();
      EXPECT_TRUE(run(report).exited(0));
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
      EXPECT_NE(line.find(",\"lifetime_max_ms\":null,"), std::string::npos) << line;
    } else {
      const std::string ms = std::to_string(std::stoul(line.substr(at + start.size())));
      EXPECT_GE(std::stoul(ms), 100u);
      EXPECT_NE(line.find(start + ms + ",\"lifetime_mean_ms\":" + ms +
                          ",\"lifetime_max_ms\":" + ms + ","),
                std::string::npos)
          << line;
    }
    EXPECT_TRUE(expire.wait().exited(0));
  }
  process.write("q");
  EXPECT_TRUE(process.wait().exited(0));
}

}  // namespace
}  // namespace mtrace::test
