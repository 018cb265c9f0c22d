// memlog unreachable on servers under load, again and again: they answer as they do by themselves,
// and nothing of theirs is called lost.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "host_test.h"
#include "local_server.h"

namespace mtrace::test {
namespace {

using nlohmann::json;

class UnreachableProgramsTest : public HostTest {
 protected:
  // `make unreachable-soak` asks for more.
  static size_t rounds() {
    const char* wish = std::getenv("MTRACE_SCAN_ROUNDS");
    return wish != nullptr ? static_cast<size_t>(std::atoi(wish)) : 3;
  }

  Command served(std::vector<std::string> argv) const {
    Command command = traced(std::move(argv));
    command.env["MTRACE_LEDGER"] = temp();
    return command;
  }

  // Looks at the process while `load` runs over and over in another thread, and prints for how long
  // it was stopped.
  void exercise(const std::string& name, pid_t pid, const std::function<void()>& load) {
    std::atomic<bool> stop = false;
    std::atomic<int> loads = 0;
    std::thread loader([&] {
      for (; !stop; ++loads) load();
    });
    std::vector<double> stops;  // ms
    for (size_t round = 0; round < rounds() && !HasFailure(); ++round) {
      const int before = loads;
      wait_until("load", [&] { return loads > before; });
      const Result result = memlog({"unreachable", "--json", "--pause", "0", std::to_string(pid)});
      EXPECT_TRUE(result.exited(0)) << result.how() << result.out << result.err;
      if (HasFailure()) break;
      const json answer = json::parse(result.out);
      EXPECT_GT(answer["reachable_blocks"], 100);
      for (const json& us : answer["stopped_us"]) stops.push_back(us.get<double>() / 1000);
    }
    stop = true;
    loader.join();
    load();
    std::sort(stops.begin(), stops.end());
    if (stops.empty()) return;
    printf(
        "%s: %zu looks, %d times the load; stopped for %.1f ms (median), %.1f (99 %%), %.1f "
        "(most)\n",
        name.c_str(), stops.size(), loads.load(), stops[stops.size() / 2],
        stops[stops.size() * 99 / 100], stops.back());
  }
};

TEST_F(UnreachableProgramsTest, Redis) {
  const std::string socket = temp() + "/redis";
  Process server(
      served({"/usr/bin/redis-server", "--port", "0", "--unixsocket", socket, "--dir", temp(),
              "--save", "", "--appendonly", "no", "--logfile", temp() + "/redis.log"}));
  wait_for_server(socket);
  const auto client = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"/usr/bin/redis-cli", "-s", socket});
    return run(plain(arguments)).out;
  };
  client({"debug", "populate", "20000"});
  int number = 0;
  exercise("redis-server", server.pid(), [&] {
    const std::string key = "key" + std::to_string(number % 100);
    const std::string value(static_cast<size_t>(number % 3000), 'v');
    EXPECT_EQ(client({"set", key, value}), "OK\n");
    EXPECT_EQ(client({"get", key}), value + "\n");
    EXPECT_EQ(client({"eval", "local t = {} for i = 1, 500 do t[i] = i * i end return #t", "0"}),
              "500\n");
    ++number;
  });
  client({"shutdown", "nosave"});
  EXPECT_TRUE(server.wait().exited(0));
}

TEST_F(UnreachableProgramsTest, Python) {
  const std::string socket = temp() + "/python";
  write_file(temp() + "/server.py", R"TEXT(
import hashlib, http.server, json, socketserver, sys, threading
kept = {}
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        table = {str(i): self.path * (i % 50) for i in range(300)}
        kept[len(kept) % 100] = table
        body = (self.path + ' ' + hashlib.md5(json.dumps(table).encode()).hexdigest()).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args): pass
    def address_string(self): return 'here'
class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    def get_request(self):
        request, address = super().get_request()
        return request, ('here', 0)
server = Server(sys.argv[1], Handler)
threading.Thread(target=lambda: (sys.stdin.read(), server.shutdown())).start()
server.serve_forever()
)TEXT");
  Process server(served({"/usr/bin/python3", temp() + "/server.py", socket}));
  wait_for_server(socket);
  const std::string first = get(socket, "/answer");
  ASSERT_NE(first.find("/answer "), std::string::npos) << first;
  const std::string body = first.substr(first.rfind("/answer "));
  exercise("python3", server.pid(), [&] { EXPECT_TRUE(get(socket, "/answer").ends_with(body)); });
  const Result result = server.wait();
  EXPECT_TRUE(result.exited(0)) << result.how() << result.err;
}

}  // namespace
}  // namespace mtrace::test
