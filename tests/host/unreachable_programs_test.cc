// memlog unreachable on servers under load, again and again: they answer as they do by themselves,
// and nothing of theirs is called lost.
#include <functional>
#include <nlohmann/json.hpp>

#include "host_test.h"
#include "local_server.h"

namespace mtrace::test {
namespace {

using nlohmann::json;

class UnreachableProgramsTest : public HostTest {
 protected:
  static size_t rounds() { return 3 * static_cast<size_t>(longer()); }

  Command served(Words argv) const { return traced(std::move(argv), {{"MTRACE_LEDGER", temp()}}); }

  // Looks at the process while `load` runs over and over in another thread, and prints for how long
  // it was stopped.
  void exercise(const std::string& name, pid_t pid, const std::function<void()>& load) {
    Load loading(load);
    std::vector<double> stops;  // ms
    for (size_t round = 0; round < rounds() && !HasFailure(); ++round) {
      loading.wait_for(1);
      const Result result =
          expect_exit(memlog({"unreachable", "--json", "--pause", "0", std::to_string(pid)}));
      if (HasFailure()) break;
      const json answer = json::parse(result.out);
      EXPECT_GT(answer["reachable_blocks"], 100);
      for (const json& us : answer["stopped_us"]) stops.push_back(us.get<double>() / 1000);
    }
    loading.end();
    load();
    std::sort(stops.begin(), stops.end());
    if (stops.empty()) return;
    printf(
        "%s: %zu looks, %d times the load; stopped for %.1f ms (median), %.1f (99 %%), %.1f "
        "(most)\n",
        name.c_str(), stops.size(), loading.count(), stops[stops.size() / 2],
        stops[stops.size() * 99 / 100], stops.back());
  }
};

TEST_F(UnreachableProgramsTest, Redis) {
  Process server(served(redis_server(temp())));
  wait_for_server(temp() + "/redis");
  redis(temp(), {"debug", "populate", "20000"});
  int number = 0;
  exercise("redis-server", server.pid(), [&] { load_redis(temp(), number++); });
  redis(temp(), {"shutdown", "nosave"});
  expect_exit(server.wait());
}

TEST_F(UnreachableProgramsTest, Python) {
  const std::string socket = temp() + "/python";
  write_file(temp() + "/server.py", kPythonServer);
  Process server(served({"/usr/bin/python3", temp() + "/server.py", socket}));
  wait_for_server(socket);
  const std::string first = get(socket, "/answer");
  ASSERT_NE(first.find("/answer "), std::string::npos) << first;
  const std::string body = first.substr(first.rfind("/answer "));
  exercise("python3", server.pid(), [&] { EXPECT_TRUE(get(socket, "/answer").ends_with(body)); });
  expect_exit(server.wait());
}

}  // namespace
}  // namespace mtrace::test
