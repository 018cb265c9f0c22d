// What blocking system calls return, and when, in a process that memlog attaches to and detaches
// from over and over: the same as in one that is left alone.
#include "host_test.h"

namespace mtrace::test {
namespace {

struct Outcome {
  long result;    // or minus errno
  double limits;  // how long it took, in time limits of its own; 0: it had none
};

class AttachCallsTest : public HostTest {
 protected:
  // Runs the program. `meanwhile`: is called when its threads are there. `plugin`: one of them
  // waits in its constructor.
  std::map<std::string, Outcome> outcomes(const std::function<void(pid_t)>& meanwhile,
                                          const std::string& plugin = {}) const {
    Words argv = {program("blocking_calls")};
    if (!plugin.empty()) argv.push_back(plugin);
    Ready process(plain(argv));
    meanwhile(process.pid());
    process.read_until("over");
    process.write(plugin.empty() ? "x" : "xx");
    const Result result = expect_exit(process.wait());
    std::map<std::string, Outcome> found;
    for (const std::string& line : lines_of(result.out)) {
      std::istringstream words(line);
      std::string name;
      Outcome outcome = {};
      if (words >> name >> outcome.result >> outcome.limits) found[name] = outcome;
    }
    return found;
  }
  static void expect_same(const std::map<std::string, Outcome>& alone,
                          const std::map<std::string, Outcome>& held) {
    EXPECT_GE(alone.size(), 50u);
    EXPECT_EQ(held.size(), alone.size());
    for (const auto& [name, expected] : alone) {
      const auto found = held.find(name);
      if (found == held.end()) continue;
      EXPECT_EQ(found->second.result, expected.result) << name;
      if (expected.limits == 0) continue;
      // A call ends not before its limit. How much later is the machine's matter.
      EXPECT_GT(found->second.limits, 0.99) << name;
    }
  }
};

// memlog stops the process again and again, and gives up.
TEST_F(AttachCallsTest, ReturnWhatTheyWouldWhenAttachIsRefused) {
  auto alone = outcomes([](pid_t) {});
  auto held = outcomes(
      [&](pid_t pid) {
        EXPECT_HAS(expect_exit(memlog({"attach", "--timeout", "1", std::to_string(pid)}), 1).err,
                   "did not reach a safe point");
      },
      program("plugin_slow.so"));
  // Without the library there is no call-frame information where the call goes on, so destructors
  // of a cancelled thread do not run.
  alone.erase("epoll_wait-cancelled");
  held.erase("epoll_wait-cancelled");
  expect_same(alone, held);
}

TEST_F(AttachCallsTest, ReturnWhatTheyWould) {
  const auto alone = outcomes([](pid_t) {});
  constexpr int kMostRounds = 300;
  int rounds = 0;
  const auto held = outcomes([&](pid_t pid) {
    // Those without a limit, and main.
    const size_t left =
        1 + static_cast<size_t>(std::count_if(alone.begin(), alone.end(), [](const auto& call) {
          return call.second.limits == 0;
        }));
    do {
      for (const char* verb : {"attach", "detach"}) {
        const Result result = memlog({verb, std::to_string(pid)});
        EXPECT_TRUE(result.exited(0)) << verb << result.how() << result.err;
      }
    } while (names_in("/proc/" + std::to_string(pid) + "/task").size() > left &&
             ++rounds < kMostRounds);
  });
  EXPECT_LT(rounds, kMostRounds);
  expect_same(alone, held);
}

}  // namespace
}  // namespace mtrace::test
