// memlog serve under hostile load: clients that send or read slowly, floods of connections,
// requests that are none. The page answers meanwhile, and memory stays bounded.
#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <random>
#include <thread>

#include "host_test.h"
#include "http_client.h"

namespace mtrace::test {
namespace {

using Clock = std::chrono::steady_clock;

class HostileLoadTest : public HostTest {
 protected:
  static std::chrono::seconds length() { return std::chrono::seconds(3 * longer()); }
  // Bytes of a line "NAME:  N kB" of /proc/PID/status.
  static int64_t memory(pid_t pid, const std::string& name) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with(name + ":")) return std::stoll(line.substr(name.size() + 1)) * 1024;
    }
    return 0;
  }
};

// One request of what no client would send.
std::string malformed(std::mt19937& random) {
  static const char* const kBeginnings[] = {
      "GET /metrics HTTP/1.1\r\nHost: localhost\r\n",
      "GET /api/processes/%00%ff/stacks?include=(((((((((( HTTP/1.1\r\nHost: localhost\r\n",
      "POST /api/processes/1/attach HTTP/1.1\r\nContent-Length: 99999999999\r\n",
      "GET http://localhost:0/ HTTP/9.9\r\n",
      "\x16\x03\x01\x02\x00\x01\x00",
      "GET / HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-,0-,0-,0-\r\n",
      "OPTIONS * HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n"};
  std::string text = kBeginnings[random() % std::size(kBeginnings)];
  for (size_t i = random() % 2000; i > 0; --i) text += static_cast<char>(random());
  if (random() % 2 == 0) text += "\r\n\r\n";
  return text;
}

// Each works until `over`, from an address of its own.
void send_slowly(int port, const std::atomic<bool>& over) {
  while (!over) {
    std::vector<std::unique_ptr<HttpConnection>> slow;
    for (int i = 0; i < 60; ++i) {
      slow.push_back(std::make_unique<HttpConnection>(port, "127.0.0.2"));
    }
    for (int i = 0; i < 20 && !over; ++i) {
      for (const auto& one : slow) one->send("x");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
}
void read_slowly(int port, const std::atomic<bool>& over) {
  while (!over) {
    std::vector<std::unique_ptr<HttpConnection>> slow;
    for (int i = 0; i < 8 && !over; ++i) {
      slow.push_back(std::make_unique<HttpConnection>(port, "127.0.0.3"));
      slow.back()->send("GET /api/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    for (int i = 0; i < 20 && !over; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
}
void flood(int port, const std::atomic<bool>& over) {
  while (!over) {
    HttpConnection one(port, "127.0.0.4");
    one.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }
}
void send_nonsense(int port, const std::atomic<bool>& over) {
  std::mt19937 random(1);
  while (!over) {
    HttpConnection one(port, "127.0.0.5");
    one.send(malformed(random));
    if (random() % 4 == 0) one.read_until("\r\n");
  }
}

TEST_F(HostileLoadTest, ThePageAnswersAndMemoryIsBounded) {
  Process target(traced({program("live_target"), ""}, {{"MTRACE_LEDGER", temp()}}));
  target.read_until("go");
  Process server(plain({memlog_tool(), "serve", "--listen", "127.0.0.1:0", target.id()}));
  const std::string told = server.read_line().value_or("");
  const int port = std::stoi(told.substr(told.rfind(':') + 1));
  const auto ask = [&](const std::string& path) { return http(port, "GET", path).status; };
  ASSERT_EQ(ask("/metrics"), 200);
  const int64_t before = memory(server.pid(), "VmRSS");

  std::atomic<bool> over = false;
  std::vector<std::thread> attackers;
  for (const auto& attack : {send_slowly, read_slowly, flood, send_nonsense}) {
    attackers.emplace_back([&, attack] {
      while (!over) {
        try {
          attack(port, over);
        } catch (
            const std::runtime_error&) {  // this machine has no port left, or the queue is full
        }
      }
    });
  }
  std::vector<double> times;
  int refused = 0;
  const auto end = Clock::now() + length();
  do {
    const auto begin = Clock::now();
    int status = 0;
    try {
      status = ask(times.size() % 2 == 0 ? "/api/processes" : "/");
    } catch (const std::runtime_error&) {
    }
    times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    refused += status != 200;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  } while (Clock::now() < end);
  over = true;
  for (std::thread& one : attackers) one.join();
  const int64_t most = memory(server.pid(), "VmHWM");
  std::sort(times.begin(), times.end());
  std::printf("%zu answers, %d refused; median %.3f s, longest %.3f s; memory +%.1f MiB\n",
              times.size(), refused, times[times.size() / 2], times.back(),
              static_cast<double>(most - before) / (1 << 20));
  // The kernel's queue of connections is shared: now and then it is full.
  EXPECT_LE(refused, 1 + static_cast<int>(times.size()) / 10);
  EXPECT_LT(most - before, 64 << 20);
  EXPECT_EQ(ask("/metrics"), 200);
  server.send(SIGTERM);
  expect_exit(server.wait());
}

}  // namespace
}  // namespace mtrace::test
