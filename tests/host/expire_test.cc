// memlog expire on a process that was started without the library.
#include <filesystem>

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
    Process expire(plain({memlog_tool(), "expire", "--after", "100ms", "--max-stacks", "1",
                          "--format", "json", std::to_string(process.pid())}));
    EXPECT_NE(line_with(expire, "\"begin\""), "");
    process.write("ap");
    process.read_until("told");
    const std::string end = line_with(expire, "\"event\":\"stack\"");
    EXPECT_NE(end.find("\"may_leak\":1,\"may_leak_bytes\":321,\"expired\":1"), std::string::npos)
        << end;
    EXPECT_NE(end.find("site_attached"), std::string::npos) << end;
    EXPECT_TRUE(expire.wait().exited(0));
    const Result status = run(plain({memlog_tool(), "status", std::to_string(process.pid())}));
    EXPECT_NE((status.out + status.err).find("memlog detach"), std::string::npos)
        << status.out << status.err;
    EXPECT_TRUE(std::filesystem::exists(ledger(process.pid())));
    const Result top = run(plain({memlog_tool(), "top", "--once", std::to_string(process.pid())}));
    EXPECT_TRUE(top.exited(1)) << top.how() << top.out;
    EXPECT_NE(top.err.find("is not traced any more: memlog detach"), std::string::npos) << top.err;
  }
  process.write("q");
  EXPECT_TRUE(process.wait().exited(0));
  EXPECT_FALSE(std::filesystem::exists(ledger(process.pid())));
}

}  // namespace
}  // namespace mtrace::test
