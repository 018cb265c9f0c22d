// Event logs that memlog serve --receive takes, on loopback.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "host_test.h"
#include "http_client.h"

namespace mtrace::test {
namespace {

namespace fs = std::filesystem;

class StreamedTest : public HostTest {
 protected:
  std::string store() const { return temp() + "/store"; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  int port() const { return port_; }

  // At the port of the receiver before, if there was one.
  void receive(std::vector<std::string> words = {}) {
    words.insert(words.begin(),
                 {memlog_tool(), "serve", "--listen", address(), "--receive", store()});
    receiver_ = std::make_unique<Process>(plain(words));
    const std::string told = receiver_->read_line().value_or("");
    ASSERT_TRUE(told.starts_with("listening at ")) << told << receiver_->wait().err;
    port_ = std::stoi(told.substr(told.rfind(':') + 1));
  }

 private:
  std::unique_ptr<Process> receiver_;
  int port_ = 0;
};

TEST_F(StreamedTest, ReceiversAppendOnlyAtTheEnd) {
  receive({"--max-disk", "1M"});
  const auto put = [&](const std::string& name, size_t at, const std::string& body) {
    HttpConnection connection(port());
    connection.send("PUT /api/logs/" + name + "?at=" + std::to_string(at) +
                    " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: " +
                    std::to_string(body.size()) + "\r\n\r\n" + body);
    return parse_answer(connection.read_all());
  };
  const auto size_after = [&](const std::string& name, size_t at, const std::string& body) {
    const HttpAnswer answer = put(name, at, body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    const size_t found = answer.body.find("\"size\"");
    return found == std::string::npos ? -1 : std::stol(answer.body.substr(found + 7));
  };
  const std::string begin = "\x28\xb5\x2f\xfd and so on";
  const std::string name = "web1/app-1-20261120T100000.000001Z-6a0e8a3e.events";
  EXPECT_EQ(size_after(name, 0, ""), 0);
  EXPECT_FALSE(fs::exists(store() + "/web1"));
  EXPECT_EQ(size_after(name, 0, begin), 14);
  EXPECT_EQ(size_after(name, 0, begin), 14);
  EXPECT_EQ(size_after(name, 3, "more"), 14);
  EXPECT_EQ(size_after(name, 99, "more"), 14);
  EXPECT_EQ(size_after(name, 14, "more"), 18);
  EXPECT_EQ(read_file(store() + '/' + name), begin + "more");
  EXPECT_EQ(put(name, 18, std::string((8 << 20) + 1, 'x')).status, 413);
  EXPECT_EQ(put("web1/b.events", 0, "not zstd").status, 400);
  for (const char* bad :
       {"web1/app.memlog.zst", ".web1/a.events", "web1/.a.events", "web1/a%20b.events"}) {
    EXPECT_EQ(put(bad, 0, begin).status, 400) << bad;
  }
  EXPECT_EQ(put("..%2f/a.events", 0, begin).status, 404);
  EXPECT_EQ(put("web1/..%2fa.events", 0, begin).status, 404);
  // All together have at most 1 MiB: the one that grew last longest ago goes.
  const std::string half = begin + std::string((512 << 10) - begin.size(), 'x');
  EXPECT_EQ(size_after("web1/b.events", 0, half), 512 << 10);
  EXPECT_EQ(size_after("web2/c.events", 0, half), 512 << 10);
  EXPECT_FALSE(fs::exists(store() + '/' + name));
  EXPECT_EQ(put("web1/b.events", 512 << 10, half + "x").status, 413);
  EXPECT_EQ(size_after("web1/b.events", 512 << 10, "more"), (512 << 10) + 4);
  EXPECT_FALSE(fs::exists(store() + "/web2/c.events"));
  EXPECT_EQ(read_file(store() + "/web1/b.events"), half + "more");
}

}  // namespace
}  // namespace mtrace::test
