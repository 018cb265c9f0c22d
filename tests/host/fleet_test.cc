// memlog push, collect and serve --receive: reports of many machines, on loopback.
#include <sys/socket.h>

#include <memory>
#include <random>
#include <thread>

#include "host_test.h"
#include "http_client.h"

namespace mtrace::test {
namespace {

constexpr char kToken[] = "0123456789abcdef\n";

struct Sample {
  std::string host = "web1";
  int pid = 100;
  int seq = 1;
  int first = 0;  // of a merged report
  int hour = 10;  // when it was taken
  int frames = 1;
};

std::string text_of(const Sample& sample) {
  const std::string change = std::to_string(64 * sample.seq) + " bytes +1 blocks\n";
  std::string out =
      "# memlog 2\n# program: /usr/bin/app\n# command: app\n# pid: " + std::to_string(sample.pid) +
      "\n# seq: " + std::to_string(sample.seq) +
      (sample.first == 0 ? "\n"
                         : "\n# merged: " + std::to_string(sample.first) + " to " +
                               std::to_string(sample.seq) + "\n") +
      "# trigger: request\n# started: 2026-11-20T10:00:00.000001Z\n# taken: 2026-11-20T" +
      std::to_string(sample.hour) + ":00:00." + std::to_string(100000 + sample.seq) +
      "Z\n# delta: +" + change + "# live: " + std::to_string(64 * sample.seq) +
      " bytes 1 blocks\n# lost: frames=0 stacks=0 blocks=0 inflight=0\n+" +
      std::to_string(64 * sample.seq) + "\tblocks=+1\tlive=" + std::to_string(64 * sample.seq) +
      "\tstack=00000000000000ab\n";
  for (int i = 0; i < sample.frames; ++i) {
    out += "\tf" + std::to_string(i * sample.seq % 9973) + "\ta.c:" + std::to_string(i + 1) +
           "\t(/usr/bin/app+0x" + std::to_string(1000 + i) + ")\n";
  }
  return out + "# module: /usr/bin/app build-id=8c02f1 base=0x1000\n# host: " + sample.host +
         " boot-id=6a0e8a3e-0000-4000-8000-000000000000 arch=x86_64\n# resolved: yes\n# end\n";
}

std::string name_of(const Sample& sample) {
  return sample.host + "/app-" + std::to_string(sample.pid) + "-20261120T100000.000001Z-6a0e8a3e-" +
         std::to_string(sample.seq) + ".memlog.zst";
}

// Reads the head of a request, and no more.
std::string read_head(int connection) {
  std::string head;
  for (char one; !head.ends_with("\r\n\r\n") && ::recv(connection, &one, 1, 0) == 1;) head += one;
  return head;
}

void answer(int connection, const std::string& body, const std::string& status = "200 OK") {
  const std::string text = "HTTP/1.1 " + status + "\r\nConnection: close\r\nContent-Length: " +
                           std::to_string(body.size()) + "\r\n\r\n" + body;
  ::send(connection, text.data(), text.size(), MSG_NOSIGNAL);
}

// Listens on loopback with room for little, so that a client that sends more has to wait.
int listen_narrowly(int& port) {
  const int listening = socket_at_free_port(port);
  const int room = 4096;
  ::setsockopt(listening, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  if (::listen(listening, 8) != 0) throw std::runtime_error("no socket to listen at");
  return listening;
}

class FleetTest : public HostTest {
 protected:
  FleetTest() { fs::create_directories(sources()); }

  std::string sources() const { return temp() + "/sources"; }
  std::string store() const { return temp() + "/store"; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  int port() const { return port_; }

  void write_sample(const Sample& sample) const {
    write_file(sources() + "/" + sample.host + "-" + std::to_string(sample.pid) + "-" +
                   std::to_string(sample.seq) + ".memlog",
               text_of(sample));
  }
  // Returns its path.
  std::string private_file(const std::string& name, const std::string& text) const {
    write_private(temp() + "/" + name, text);
    return temp() + "/" + name;
  }
  // At the port of the receiver before, if there was one.
  void receive(const Words& words = {}) {
    receiver_ = std::make_unique<Process>(
        plain(joined({memlog_tool(), "serve", "--listen", "127.0.0.1:" + std::to_string(port_),
                      "--receive", store()},
                     words)));
    const std::string told = receiver_->read_line().value_or("");
    ASSERT_TRUE(told.starts_with("listening at ")) << told << receiver_->wait().err;
    port_ = std::stoi(told.substr(told.rfind(':') + 1));
  }
  void end_receiver(int signal) {
    receiver_->send(signal);
    receiver_->wait();
    receiver_.reset();
  }
  Result push(const Words& words = {}) const {
    return memlog(joined(joined({"push"}, words), {url(), sources()}));
  }
  std::unique_ptr<Process> follow() const {
    return std::make_unique<Process>(plain({memlog_tool(), "push", "--follow", url(), sources()}));
  }
  // Names of the reports in the directory, and of all other files but those that begin with ".".
  static std::set<std::string> files_in(const std::string& directory) {
    std::set<std::string> names;
    std::error_code error;
    for (auto item = fs::recursive_directory_iterator(directory, error);
         item != fs::recursive_directory_iterator(); item.increment(error)) {
      const std::string name = item->path().lexically_relative(directory);
      std::error_code gone;
      if (!item->path().filename().string().starts_with('.') && item->is_regular_file(gone)) {
        names.insert(name);
      }
    }
    return names;
  }
  std::set<std::string> stored() const { return files_in(store()); }
  std::string unpacked(const std::string& name, const std::string& directory) const {
    return expect_exit(run(plain({"/usr/bin/zstd", "-dcq", directory + '/' + name}))).out;
  }
  HttpAnswer put(const std::string& body, const std::string& headers = "") const {
    HttpConnection connection(port_);
    connection.send("PUT /api/memlogs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: " +
                    std::to_string(body.size()) + "\r\n" + headers + "\r\n" + body);
    return parse_answer(connection.read_all());
  }
  std::string packed(const std::string& text) const {
    write_file(temp() + "/text", text);
    return run(plain({"/usr/bin/zstd", "-cq", temp() + "/text"})).out;
  }

 private:
  std::unique_ptr<Process> receiver_;
  int port_ = 0;
};

// Two processes with three reports each: sent by one, sent again, and as another file.
TEST_F(FleetTest, EachReportIsThereOnce) {
  std::set<std::string> expected;
  for (const int pid : {100, 200}) {
    for (const int seq : {1, 2, 3}) {
      const Sample sample{.pid = pid, .seq = seq};
      write_sample(sample);
      expected.insert(name_of(sample));
    }
  }
  receive();
  Result result = expect_exit(push());
  EXPECT_TRUE(result.out.starts_with("6 reports sent to " + url() + ", ")) << result.out;
  EXPECT_EQ(stored(), expected);
  for (const int seq : {1, 2, 3}) {
    const Sample sample{.pid = 200, .seq = seq};
    EXPECT_EQ(unpacked(name_of(sample), store()), text_of(sample));
  }
  fs::copy(sources() + "/web1-100-2.memlog", sources() + "/copy.memlog");
  result = expect_exit(push());
  EXPECT_EQ(result.out, "0 reports sent to " + url() + ", 0 bytes compressed; 6 there already\n");
  EXPECT_EQ(stored(), expected);
}

// The programs are here and not where the report goes.
TEST_F(FleetTest, NamesAreLookedUpBeforeSending) {
  const Result ran = run(traced({program("live_target"), ""}));
  ASSERT_EQ(logs_of("live_target").size(), 1u) << ran.err;
  receive();
  expect_exit(memlog({"push", url(), out()}));
  const auto names = stored();
  ASSERT_EQ(names.size(), 1u);
  const std::string text = unpacked(*names.begin(), store());
  EXPECT_HAS(text, "\tmain\t");
  EXPECT_LACKS(text, "# resolved: no\n");
  EXPECT_HAS(read_file(report_path("live_target", ran.pid, 1)), "# resolved: no\n");
}

// Sender and receiver are killed again and again, at moments that depend on what has arrived.
TEST_F(FleetTest, KillsLoseNothingAndDoubleNothing) {
  constexpr int kReports = 150;
  constexpr int kKills = 12;
  Settings expected;
  for (int i = 0; i < kReports; ++i) {
    const Sample sample{
        .host = "web" + std::to_string(i % 5), .pid = 100 + i % 7, .seq = i + 1, .frames = 120};
    write_sample(sample);
    expected[name_of(sample)] = text_of(sample);
  }
  std::mt19937 random(20);
  receive();
  auto sender = follow();
  std::set<std::string> acknowledged;
  for (int kill = 1; kill <= kKills; ++kill) {
    const size_t wanted = acknowledged.size() + 1 + random() % 9;
    wait_until("reports", [&] { return stored().size() >= wanted; });
    if (random() % 2 == 0) {
      end_receiver(SIGKILL);
      receive();
    } else {
      sender->send(SIGKILL);
      sender->wait();
      sender = follow();
    }
    const std::set<std::string> now = stored();
    EXPECT_TRUE(std::includes(now.begin(), now.end(), acknowledged.begin(), acknowledged.end()));
    acknowledged = now;
  }
  EXPECT_LT(acknowledged.size(), kReports) << "the kills came too late to show anything";
  wait_until("all reports", [&] { return stored().size() >= kReports; });
  sender->send(SIGTERM);
  sender->wait();
  EXPECT_HAS(expect_exit(push()).out, "; 150 there already");
  EXPECT_EQ(stored().size(), expected.size());
  for (const auto& [name, text] : expected) EXPECT_EQ(unpacked(name, store()), text) << name;
  // What was on its way is removed by the next start.
  for (const auto& item : fs::directory_iterator(store())) {
    EXPECT_FALSE(item.path().filename().string().starts_with(".incoming-")) << item.path();
  }
}

// The sender's directory is merged meanwhile, as memlog run --keep does. The sample's merged report
// has 64 bytes a number, which is not the sum of what it contains.
TEST_F(FleetTest, ReportsThatAMergedOneContainsCountOnce) {
  for (const int seq : {1, 2, 3}) write_sample({.seq = seq});
  receive();
  expect_exit(push());
  for (const int seq : {1, 2, 3}) {
    fs::remove(sources() + "/web1-100-" + std::to_string(seq) + ".memlog");
  }
  write_sample({.seq = 4, .first = 1});
  expect_exit(push());
  EXPECT_EQ(stored().size(), 4u);
  const Result sum = memlog({"show", "--sum", "--bytes", store() + "/web1"});
  EXPECT_HAS(sum.out, "256");
  EXPECT_LACKS(sum.out, "640");
}

// The ordinary commands work in the directory of a host, also while it receives.
TEST_F(FleetTest, ReportsMergedAtTheReceiverAreNotSentAgain) {
  for (const int seq : {1, 2, 3, 4}) write_sample({.seq = seq});
  receive();
  expect_exit(push());
  expect_exit(memlog({"merge", "--keep", "1", store() + "/web1"}));
  const std::set<std::string> left = {name_of({.seq = 3}), name_of({.seq = 4})};
  for (const bool restarted : {false, true}) {
    if (restarted) {
      end_receiver(SIGTERM);
      receive();
    }
    EXPECT_HAS(push().out, "; 4 there already");
    EXPECT_EQ(stored(), left);
    const std::string to = temp() + (restarted ? "/first" : "/second");
    expect_exit(memlog({"collect", "--from", url(), "--to", to}));
    EXPECT_EQ(files_in(to), left);
  }
}

// The server lets an address ask ten times a second, and twenty times at once.
TEST_F(FleetTest, ABusyServerIsAskedAgain) {
  for (int seq = 1; seq <= 35; ++seq) write_sample({.seq = seq});
  receive({"--max-rate", "10"});
  EXPECT_EQ(expect_exit(push()).err, "");
  EXPECT_EQ(stored().size(), 35u);
  expect_exit(memlog({"collect", "--from", url(), "--to", temp() + "/gathered"}));
  EXPECT_EQ(files_in(temp() + "/gathered"), stored());
}

// A server turns memlog away and closes the connection while memlog is still sending: SIGPIPE.
TEST_F(FleetTest, AServerThatDoesNotListenToTheEndIsAskedAgain) {
  std::string text = text_of({});
  std::mt19937_64 random(21);
  std::string notes;
  for (int i = 0; i < 450'000; ++i) notes += "# note: " + std::to_string(random()) + '\n';
  text.insert(text.find("# delta:"), notes);
  write_file(sources() + "/large.memlog", text);
  int port = 0;
  const int listening = listen_narrowly(port);
  std::string asked;
  std::thread server([&] {
    for (const bool end : {false, true, false}) {
      const int connection = ::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) return;
      const std::string head = read_head(connection);
      asked += head.substr(0, head.find(' ') + 1);
      if (head.starts_with("GET")) {
        answer(connection, R"({"expired_until": 0, "memlogs": []})");
      } else if (!end) {
        size_t left = std::stoul(head.substr(head.find("Content-Length: ") + 16));
        char buffer[4096];
        for (ssize_t got = 1; left != 0 && got > 0; left -= static_cast<size_t>(got)) {
          got = ::recv(connection, buffer, std::min(left, sizeof buffer), 0);
        }
        answer(connection, R"({"receipt": "stored"})");
      } else {
        char first;
        ::recv(connection, &first, 1, 0);
        answer(connection, "{}", "429 Too Many Requests");
        ::shutdown(connection, SHUT_WR);
      }
      ::close(connection);  // with bytes unread it resets the connection
    }
  });
  const Result result = memlog({"push", "http://127.0.0.1:" + std::to_string(port), sources()});
  ::shutdown(listening, SHUT_RDWR);
  server.join();
  ::close(listening);
  expect_exit(result);
  EXPECT_EQ(result.err, "");
  EXPECT_TRUE(result.out.starts_with("1 report sent to ")) << result.out;
  EXPECT_EQ(asked, "GET PUT PUT ");
}

// A report takes 4 KiB or more of the disk. Those that were taken first are removed, and stay so.
TEST_F(FleetTest, TheDiskIsBounded) {
  constexpr int kReports = 300;
  for (int seq = 1; seq <= kReports; ++seq) write_sample({.seq = seq});
  receive({"--max-disk", "1M"});
  Result result = expect_exit(push());
  std::set<std::string> expected;
  for (int seq = kReports - 255; seq <= kReports; ++seq) {
    expected.insert(name_of({.seq = seq}));
  }
  EXPECT_EQ(stored(), expected);
  end_receiver(SIGTERM);
  receive({"--max-disk", "1M"});
  result = push();
  EXPECT_HAS(result.out, "0 reports sent");
  EXPECT_HAS(result.out, "; 256 there already; 44 older than is kept");
  EXPECT_EQ(stored(), expected);
}

TEST_F(FleetTest, OldReportsExpire) {
  write_sample({.seq = 1});
  receive({"--max-age", "1h"});
  EXPECT_HAS(expect_exit(push()).out, "; 1 older than is kept");
  EXPECT_TRUE(stored().empty());
}

TEST_F(FleetTest, CollectTakesFromDirectoriesAndServers) {
  write_sample({.host = "web1", .seq = 1});
  write_sample({.host = "web2", .seq = 1});
  receive();
  expect_exit(push());
  write_sample({.host = "web3", .seq = 1});
  const std::string to = temp() + "/gathered";
  const Words words = {"collect", "--from", url(), "--from", sources(), "--to", to};
  Result result = expect_exit(memlog(words));
  EXPECT_EQ(result.out, "3 reports copied to " + to + "; 2 there already\n");
  std::set<std::string> expected;
  for (const char* host : {"web1", "web2", "web3"}) {
    const Sample sample{.host = host, .seq = 1};
    expected.insert(name_of(sample));
    EXPECT_EQ(unpacked(name_of(sample), to), text_of(sample));
  }
  EXPECT_EQ(files_in(to), expected);
  result = memlog(words);
  EXPECT_EQ(result.out, "0 reports copied to " + to + "; 5 there already\n");
  EXPECT_EQ(files_in(to), expected);
  // A source that is gone does not keep the others from being read.
  EXPECT_HAS(expect_exit(memlog({"collect", "--from", temp() + "/none", "--from", sources(), "--to",
                                 temp() + "/b"}),
                         1)
                 .err,
             "no file or directory");
  EXPECT_EQ(files_in(temp() + "/b"), expected);
}

// The directories that a server serves are a source, too.
TEST_F(FleetTest, CollectTakesWhatIsServed) {
  write_sample({.seq = 1});
  receive({sources()});
  const Result result = memlog({"collect", "--from", url(), "--to", temp() + "/to"});
  EXPECT_EQ(result.out, "1 report copied to " + temp() + "/to\n") << result.err;
  EXPECT_EQ(files_in(temp() + "/to"), std::set<std::string>{name_of({.seq = 1})});
}

TEST_F(FleetTest, OnlyWhoHasTheTokenSends) {
  const std::string token = private_file("token", kToken);
  const std::string wrong = private_file("wrong", "fedcba9876543210\n");
  write_sample({});
  receive({"--token-file", token});
  EXPECT_EQ(put(packed(text_of({}))).status, 401);
  for (const Result& result : {push(), push({"--token-file", wrong})}) {
    expect_exit(result, 1);
    EXPECT_HAS(result.err, "needs the token");
  }
  EXPECT_TRUE(stored().empty());
  expect_exit(push({"--token-file", token}));
  EXPECT_EQ(stored().size(), 1u);
}

// Over HTTPS, to a server whose certificate the named file signs. Any other file is refused before
// the token or a report leaves.
TEST_F(FleetTest, OnlyTheRightServerGetsReports) {
  const auto file = [&](const std::string& name) { return temp() + "/" + name; };
  for (const char* name : {"server", "other"}) make_certificate(temp(), name);
  private_file("token", kToken);
  write_sample({});
  receive({"--tls-cert", file("server.pem"), "--tls-key", file("server.key"), "--token-file",
           file("token")});
  const std::string address = "https://127.0.0.1:" + std::to_string(port());
  const auto push_trusting = [&](const Words& trust) {
    return memlog(
        joined(joined({"push"}, trust), {"--token-file", file("token"), address, sources()}));
  };
  for (const auto& trust : {Words{}, {"--ca-file", file("other.pem")}}) {
    const Result refused = expect_exit(push_trusting(trust), 1);
    EXPECT_HAS(refused.err, "its certificate is not trusted: --ca-file names one that signs it");
    EXPECT_LACKS(refused.err, "trying again");
    EXPECT_TRUE(stored().empty());
  }
  const Result sent = expect_exit(push_trusting({"--ca-file", file("server.pem")}));
  EXPECT_TRUE(sent.out.starts_with("1 report sent to " + address)) << sent.out;
  EXPECT_EQ(stored(), std::set<std::string>{name_of({})});
  expect_exit(memlog({"collect", "--from", address, "--ca-file", file("server.pem"), "--token-file",
                      file("token"), "--to", file("gathered")}));
  EXPECT_EQ(files_in(file("gathered")), stored());
}

TEST_F(FleetTest, TheReceiverTakesOnlyWholeMemlogs) {
  receive();
  const auto refused = [&](const std::string& body, const std::string& why) {
    const HttpAnswer answer = put(body);
    EXPECT_EQ(answer.status, 400) << answer.body;
    EXPECT_HAS(answer.body, why);
  };
  const std::string text = text_of({});
  refused(text, "not compressed with zstd");
  refused("", "not compressed with zstd");
  refused(packed("hello\n"), "does not begin like a memlog");
  refused(packed(text.substr(0, text.size() - 6)), "cut short");
  refused(packed(text + "more\n"), "cut short");
  const std::string good = packed(text);
  refused(good.substr(0, good.size() / 2), "");
  std::string host = text;
  host.replace(host.find("host: web1"), 10, "host: ../..");
  EXPECT_EQ(put(packed(host)).status, 200);
  for (const std::string& name : stored()) {
    EXPECT_TRUE(name.starts_with("~2e.~2f../app-100-")) << name;
  }
  EXPECT_TRUE(files_in(temp()).contains("text"));
  EXPECT_EQ(http(port(), "GET", "/api/memlogs/..%2f/text").status, 404);
  EXPECT_EQ(http(port(), "GET", "/api/memlogs/web1/..%2f..%2ftext").status, 404);
}

TEST_F(FleetTest, AServerTakesNothingUnlessAsked) {
  Process server(plain({memlog_tool(), "serve", "--listen", "127.0.0.1:0"}));
  const std::string told = server.read_line().value_or("");
  write_sample({});
  EXPECT_HAS(expect_exit(memlog({"push", told.substr(told.rfind(' ') + 1), sources()}), 1).err,
             "start it with --receive DIR");
  server.send(SIGTERM);
  expect_exit(server.wait());
}

TEST_F(FleetTest, OneReceiverADirectory) {
  receive();
  EXPECT_HAS(expect_exit(memlog({"collect", "--from", sources(), "--to", store()}), 1).err,
             "another memlog receives reports there");
}

TEST_F(FleetTest, DamagedReportsAreNamedAndLeftOut) {
  write_sample({});
  write_file(sources() + "/bad.memlog", "# memlog 2\n# pid: 7\n");
  receive();
  const Result result = expect_exit(push(), 1);
  EXPECT_HAS(result.err, "/bad.memlog:1: does not begin like a memlog");
  EXPECT_HAS(result.out, "1 report sent");
  EXPECT_HAS(result.out, "; 1 left out");
}

}  // namespace
}  // namespace mtrace::test
