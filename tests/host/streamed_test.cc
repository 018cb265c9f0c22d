// memlog run --events --to: event logs that memlog serve --receive takes, on loopback. Each is held
// against the log that the same program writes into a file.
#include <cctype>
#include <memory>

#include "host_test.h"
#include "http_client.h"

namespace mtrace::test {
namespace {

struct Step {
  long events;
  int depth;
};

class StreamedTest : public HostTest {
 protected:
  std::string store() const { return temp() + "/store"; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  int port() const { return port_; }

  // At the port of the receiver before, if there was one.
  void receive(Words words = {}) {
    receiver_ = std::make_unique<Process>(plain(
        joined({memlog_tool(), "serve", "--listen", address(), "--receive", store()}, words)));
    const std::string told = receiver_->read_line().value_or("");
    ASSERT_TRUE(told.starts_with("listening at ")) << told << receiver_->wait().err;
    port_ = std::stoi(told.substr(told.rfind(':') + 1));
  }
  void kill_receiver() {
    receiver_->send(SIGKILL);
    receiver_->wait();
    receiver_.reset();
  }
  // memlog run --events, with the process that writes the log.
  Command logging(Words words) const {
    Command command = tool(joined({"run", "--quiet", "--events"}, words));
    command.env.erase("MTRACE_RESOLVER");
    return command;
  }
  Command streaming(Words words) const {
    return logging(joined({"--output", out(), "--to", "http://" + address()}, words));
  }
  Words logs_in(const std::string& directory) const {
    Words logs;
    for (const auto& item : fs::recursive_directory_iterator(directory)) {
      if (item.path().extension() == ".events") logs.push_back(item.path());
    }
    return logs;
  }
  // The writers of logs, and their senders: they have the environment of the program.
  std::vector<pid_t> writers() const {
    std::vector<pid_t> found;
    for (const auto& item : fs::directory_iterator("/proc")) {
      const pid_t one = std::atoi(item.path().filename().c_str());
      if (one != 0 && read_file(item.path() / "cmdline").find("--write-log") != std::string::npos &&
          read_file(item.path() / "environ").find(temp()) != std::string::npos) {
        found.push_back(one);
      }
    }
    return found;
  }
  std::string sent_log() const {
    wait_until("a log begins to arrive", [&] { return !logs_in(store()).empty(); });
    return logs_in(store()).front();
  }
  // The log of the same steps in a file.
  std::string local_log(const std::vector<Step>& steps) const {
    Command command = logging({"--output", temp() + "/local", program("event_steps")});
    for (const Step& step : steps) {
      command.input += std::to_string(step.events) + ' ' + std::to_string(step.depth) + '\n';
    }
    expect_exit(run(command));
    return logs_in(temp() + "/local").at(0);
  }
  // Its events without times, thread ids and what memlog looks at from time to time. Of addresses
  // the order in which they came. A block's stack is its id and its functions.
  Words events_of(const std::string& path) const {
    const Result result = expect_exit(memlog({"events", "--no-resolve", path}));
    EXPECT_EQ(result.err, "");
    std::map<std::string, size_t> addresses;
    Words events;
    for (const std::string& line : lines_of(result.out)) {
      std::istringstream words(line);
      std::string word;
      std::string event;
      words >> word >> word;  // time and thread
      while (words >> word) {
        if (word.starts_with("0x")) {
          word = "#" + std::to_string(addresses.emplace(word, addresses.size()).first->second);
        }
        event += (event.empty() ? "" : " ") + word;
      }
      if (!event.starts_with("resident ")) events.push_back(event);
    }
    return events;
  }
  static void expect_equal(const Words& sent, const Words& local) {
    ASSERT_GT(local.size(), 1000u);
    EXPECT_EQ(sent.size(), local.size());
    for (size_t i = 0; i < std::min(sent.size(), local.size()); ++i) {
      ASSERT_EQ(sent[i], local[i]) << "event " << i;
    }
  }

 private:
  std::unique_ptr<Process> receiver_;
  int port_ = 0;
};

// Says what the program does, and waits until it has done it.
void do_steps(Process& process, const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    process.write(std::to_string(step.events) + ' ' + std::to_string(step.depth) + '\n');
    ASSERT_EQ(process.read_line(), "done");
  }
}

void wait_for_end(pid_t pid) {
  wait_until("the program has ended", [&] { return ::kill(pid, 0) != 0; });
}

// The receiver is killed twice while the program goes on, and once more until after its end.
TEST_F(StreamedTest, LogsAreTheLocalOnesOverReceiversThatAreKilled) {
  const std::vector<Step> steps = {{1'000, 3}, {150'001, 5}, {77, 8}, {100'000, 2}, {4'000, 9}};
  receive();
  Process process(streaming({program("event_steps")}));
  const pid_t pid = std::stoi(process.read_line().value());
  const std::string log = sent_log();
  const auto size = [&] { return fs::file_size(log); };
  for (const Step& step : steps) {
    kill_receiver();
    const auto before = size();
    do_steps(process, {step});
    if (step.depth == 9) {
      process.close_input();
      wait_for_end(pid);
    }
    EXPECT_EQ(size(), before);
    receive();
    if (step.depth != 9) wait_until("more arrives", [&] { return size() > before; });
  }
  expect_exit(process.wait());
  EXPECT_EQ(logs_in(store()), (Words{log}));
  EXPECT_TRUE(logs_in(out()).empty());
  expect_equal(events_of(log), events_of(local_log(steps)));
}

// Takes parts of an event log. Of the first it takes half, and the answer is lost; of what then
// follows all, and the answer is lost, too. The request before the first is the one of memlog run.
constexpr char kForgetfulReceiver[] = R"TEXT(
import http.server, re, sys, threading
log = b''
requests = 0
class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_PUT(self):
        global log, requests
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        if int((re.search(r'\?at=(\d+)', self.path) or [0, 0])[1]) == len(log):
            log += body[:len(body) // 2] if requests == 1 else body
        requests += 1
        self.close_connection = True
        if requests in (2, 4): return
        answer = b'{"size": %d}' % len(log)
        self.send_response(200)
        self.send_header('Connection', 'close')
        self.send_header('Content-Length', str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
    def log_message(self, *words): pass
    do_GET = do_POST = do_PUT
server = http.server.HTTPServer(('127.0.0.1', 0), Receiver)
threading.Thread(target=server.serve_forever).start()
print(server.server_port, flush=True)
sys.stdin.read()
server.shutdown()
open(sys.argv[1], 'wb').write(log)
print('both lost' if requests >= 4 else requests)
)TEXT";

TEST_F(StreamedTest, NothingIsThereTwiceWhenAnAnswerIsLost) {
  const std::vector<Step> steps = {{50'000, 4}, {40'000, 6}, {50'000, 4}};
  const std::string sent = temp() + "/sent.events";
  Process receiver(plain({"/usr/bin/python3", "-c", kForgetfulReceiver, sent}));
  const std::string port = receiver.read_line().value_or("none");
  Process process(
      logging({"--output", out(), "--to", "127.0.0.1:" + port, program("event_steps")}));
  ASSERT_TRUE(process.read_line().has_value());
  do_steps(process, steps);
  expect_exit(process.wait());
  EXPECT_HAS(receiver.wait().out, "both lost\n");
  expect_equal(events_of(sent), events_of(local_log(steps)));
}

// The receiver is away for longer than the buffer lasts. What the log lacks then is counted, and no
// stack that was first used then is missing later.
TEST_F(StreamedTest, WhatFindsNoRoomIsCounted) {
  const std::vector<Step> before = {{300'000, 3}, {1'000, 7}};
  const std::vector<Step> after = {{999, 7}};
  receive();
  // Compact, all of it would find room.
  Command command = streaming({"--events=full", program("event_steps")});
  command.env["MEMLOG_EVENTS_BUFFER"] = "4096";
  Process process(command);
  const pid_t pid = std::stoi(process.read_line().value());
  const std::string log = sent_log();
  kill_receiver();
  do_steps(process, before);
  receive();
  const auto lost_of = [](const std::string& text) {
    size_t lost = 0;
    for (const std::string& line : lines_of(text)) {
      const size_t at = line.find(" lost ");
      if (at != std::string::npos) lost += std::stoul(line.substr(at + 6));
    }
    return lost;
  };
  wait_until("the log tells of losses", [&] {
    return lost_of(memlog({"events", "--no-resolve", log}).out) != 0;
  });
  do_steps(process, after);
  process.close_input();
  wait_for_end(pid);
  const Result result = expect_exit(process.wait(), 1);

  std::vector<Step> all = before;
  all.insert(all.end(), after.begin(), after.end());
  const Words local = events_of(local_log(all));
  const Result printed = memlog({"events", "--no-resolve", log});
  const size_t lost = lost_of(printed.out);
  Words sent;
  for (const std::string& line : lines_of(printed.out)) {
    if (line.find(" resident ") == std::string::npos && line.find(" lost ") == std::string::npos) {
      sent.push_back(line);
    }
  }
  EXPECT_GT(lost, 100'000u);
  std::string digits;  // of the number, without commas
  for (const char one : result.err.substr(0, result.err.find(" events that found no room"))) {
    digits = std::isdigit(one) != 0 ? digits + one : one == ',' ? digits : "";
  }
  EXPECT_EQ(digits, std::to_string(lost)) << result.err;
  EXPECT_EQ(sent.size() + lost, local.size());
  // The last events: those of `after`, with their stacks, the report's at the end and others.
  const auto tail_of = [](const Words& lines) {
    Words stacks;
    for (size_t i = lines.size() - 999; i < lines.size(); ++i) {
      const size_t at = lines[i].find(" stack=");
      if (at != std::string::npos) stacks.push_back(lines[i].substr(at));
    }
    return stacks;
  };
  EXPECT_GT(tail_of(sent).size(), 400u);
  EXPECT_EQ(tail_of(sent), tail_of(local));
}

// The writer does not run while the program's ring fills up.
TEST_F(StreamedTest, WhatTheLogInAFileLacksIsTold) {
  Process process(
      logging({"--output", temp() + "/local", "--events-drop", program("event_steps")}));
  ASSERT_TRUE(process.read_line().has_value());
  const std::vector<pid_t> found = writers();
  ASSERT_EQ(found.size(), 1u);
  ASSERT_EQ(::kill(found[0], SIGSTOP), 0);
  do_steps(process, {{1'000'000, 3}});
  ASSERT_EQ(::kill(found[0], SIGCONT), 0);
  const Result result = expect_exit(process.wait(), 1);
  EXPECT_HAS(result.err, ".events lacks ");
  EXPECT_HAS(result.err, " events that found no room");
}

TEST_F(StreamedTest, WhatDoesNotArriveIsTold) {
  receive();
  for (const bool keeps_status : {false, true}) {
    Words words = {program("event_steps")};
    if (keeps_status) words.insert(words.begin(), "--keep-status");
    Command command = streaming(words);
    command.env["MEMLOG_EVENTS_SEND_WAIT"] = "0";
    Process process(command);
    ASSERT_TRUE(process.read_line().has_value());
    kill_receiver();
    do_steps(process, {{1000, 2}});
    const Result result = process.wait();
    EXPECT_TRUE(result.exited(keeps_status ? 0 : 1)) << result.how() << result.err;
    EXPECT_HAS(result.err, ".events lacks its last ");
    EXPECT_HAS(result.err, "cannot connect");
    receive();
  }
}

TEST_F(StreamedTest, AKilledSenderEndsTheLogAndNotTheProgram) {
  receive();
  Process process(streaming({program("event_steps")}));
  const pid_t pid = std::stoi(process.read_line().value());
  sent_log();
  // A child of the writer, of the same command.
  const std::vector<pid_t> all = writers();
  pid_t sender = 0;
  for (const pid_t one : all) {
    const std::string stat = read_file("/proc/" + std::to_string(one) + "/stat");
    const pid_t parent = std::atoi(stat.substr(stat.rfind(')') + 4).c_str());
    if (std::find(all.begin(), all.end(), parent) != all.end()) sender = one;
  }
  ASSERT_GT(sender, 0);
  ASSERT_EQ(::kill(sender, SIGKILL), 0);
  do_steps(process, {{100'000, 3}});
  process.close_input();
  wait_for_end(pid);
  EXPECT_HAS(expect_exit(process.wait(), 1).err, "may lack its end: what sends it was killed");
}

// A child's log names its parent's, which lies beside it at the receiver.
TEST_F(StreamedTest, ChildrenBeginWithWhatTheyInherited) {
  receive();
  expect_exit(run(streaming({program("event_forks"), "2", "quiet"})));
  const Words logs = logs_in(store());
  EXPECT_EQ(logs.size(), 5u);
  size_t children = 0;
  for (const std::string& log : logs) {
    const Result events = expect_exit(memlog({"events", "--no-resolve", log}));
    EXPECT_EQ(events.err, "");
    children += events.out.find(" inherited ") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(children, 4u);
}

TEST_F(StreamedTest, OnlyWhoHasTheTokenSendsOnlyToTheRightServer) {
  const auto file = [&](const std::string& name) { return temp() + "/" + name; };
  make_certificate(temp(), "server");
  for (const std::string name : {"token", "wrong"}) {
    write_private(file(name), name + "0123456789abcdef\n");
  }
  receive({"--tls-cert", file("server.pem"), "--tls-key", file("server.key"), "--token-file",
           file("token")});
  const auto result_with = [&](Words options) {
    options.insert(options.begin(), {"--output", out(), "--to", "https://" + address()});
    options.insert(options.end(), {"/bin/sh", "-c", "echo ran"});
    return run(logging(options));
  };
  const auto refused = [&](const Words& options, const std::string& why) {
    const Result result = expect_exit(result_with(options), 1);
    EXPECT_HAS(result.err, why);
    EXPECT_EQ(result.out, "");
  };
  refused({"--token-file", file("token")}, "its certificate is not trusted");
  refused({"--ca-file", file("server.pem")}, "needs the token");
  refused({"--ca-file", file("server.pem"), "--token-file", file("wrong")}, "needs the token");
  EXPECT_FALSE(fs::exists(store()) && !logs_in(store()).empty());
  EXPECT_EQ(
      expect_exit(result_with({"--ca-file", "../server.pem", "--token-file", "../token"})).out,
      "ran\n");
  EXPECT_EQ(logs_in(store()).size(), 1u);
}

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

TEST_F(StreamedTest, MistakesAreNamed) {
  const auto wrong = [&](const std::string& address, const std::string& why) {
    const Result result =
        expect_exit(memlog({"run", "--events", "--to", address, "/bin/echo", "ran"}), 1);
    EXPECT_HAS(result.err, why);
    EXPECT_EQ(result.out, "");
  };
  wrong("127.0.0.1:" + std::to_string(free_port()), "cannot connect");
  Process server(plain({memlog_tool(), "serve", "--listen", "127.0.0.1:0"}));
  const std::string told = server.read_line().value_or("");
  wrong(told.substr(told.rfind(' ') + 1), "start it with --receive DIR");
  server.send(SIGTERM);
  expect_exit(server.wait());
}

}  // namespace
}  // namespace mtrace::test
