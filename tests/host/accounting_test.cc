// What each stack did between two reports, against a program that knows.
#include <cstdio>
#include <map>
#include <sstream>
#include <tuple>

#include "host_test.h"

namespace mtrace::test {
namespace {

using Did = std::tuple<int64_t, int64_t, int64_t, int64_t>;  // allocations, bytes, frees, bytes

class AccountingTest : public HostTest {
 protected:
  static std::map<int, std::map<std::string, Did>> told(const std::string& output) {
    std::map<int, std::map<std::string, Did>> phases;
    std::istringstream lines(output);
    std::string word, name;
    int phase;
    int64_t allocations, bytes, frees, freed;
    while (lines >> word >> phase >> name >> allocations >> bytes >> frees >> freed) {
      phases[phase][name] = {allocations, bytes, frees, freed};
    }
    return phases;
  }

  // By the innermost function whose name begins with site_.
  static std::map<std::string, Did> found(const Memlog& log) {
    std::map<std::string, Did> sites;
    for (const Entry& entry : log.entries) {
      // What plugin_allocator.so allocates to answer the library.
      if (!entry.frames.empty() && entry.frames[0].function == "malloc_usable_size") continue;
      for (const Frame& frame : entry.frames) {
        if (!frame.function.starts_with("site_")) continue;
        auto count = [&](const char* key) {
          const auto at = entry.counts.find(key);
          return at == entry.counts.end() ? int64_t{0} : at->second;
        };
        Did& did = sites[frame.function];
        std::get<0>(did) += count("allocs");
        std::get<1>(did) += count("allocated");
        std::get<2>(did) += count("frees");
        std::get<3>(did) += count("freed");
        break;
      }
    }
    return sites;
  }

  std::vector<Memlog> run(const char* entries, std::map<int, std::map<std::string, Did>>* phases,
                          const std::string& allocator = "") {
    Command command = named({program("accounting")});
    command.env["MTRACE_ENTRIES"] = entries;
    if (!allocator.empty()) command.env["LD_PRELOAD"] = library() + ":" + allocator;
    const Result result = expect_exit(mtrace::test::run(command));
    *phases = told(result.out);
    std::vector<Memlog> logs = logs_of("accounting");
    EXPECT_EQ(logs.size(), 3u);
    return logs;
  }
};

TEST_F(AccountingTest, ActiveListsAllThatWasDone) {
  std::map<int, std::map<std::string, Did>> phases;
  const std::vector<Memlog> logs = run("active", &phases);
  ASSERT_EQ(phases.size(), 2u);
  EXPECT_EQ(found(logs.at(0)), phases[1]);
  EXPECT_EQ(found(logs.at(1)), phases[2]);
  EXPECT_EQ(found(logs.at(2)), (std::map<std::string, Did>()));
}

TEST_F(AccountingTest, NetLeavesOutWhatLeftNothingBehind) {
  std::map<int, std::map<std::string, Did>> phases;
  const std::vector<Memlog> logs = run("net", &phases);
  for (int phase : {1, 2}) phases[phase].erase("site_none_kept");
  EXPECT_EQ(found(logs.at(0)), phases[1]);
  EXPECT_EQ(found(logs.at(1)), phases[2]);
}

// calloc and realloc then pass the hooks twice, and the question for the slack once more.
TEST_F(AccountingTest, CountsOnceWithAnAllocatorThatCallsItself) {
  std::map<int, std::map<std::string, Did>> phases;
  const std::vector<Memlog> logs = run("active", &phases, program("plugin_allocator.so"));
  ASSERT_EQ(phases.size(), 2u);
  EXPECT_EQ(found(logs.at(0)), phases[1]);
  EXPECT_EQ(found(logs.at(1)), phases[2]);
  EXPECT_EQ(logs.at(1).get("unknown-frees"), "0");
  EXPECT_HAS(logs.at(1).get("calls"), " calloc=1 realloc=10 ");
}

// `delete` called six times is six, though the forms call each other where libstdc++ has them.
class OperatorCallsTest : public HostTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(OperatorCallsTest, EachIsCountedOnce) {
  const std::string allocator = GetParam();
  const bool apart = !allocator.empty();
  Command command = traced({program("operators")});
  if (apart) command.env["LD_PRELOAD"] += ":" + allocator;
  const Result result = expect_exit(mtrace::test::run(command));
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_GE(logs.size(), 2u);
  std::map<std::string, int64_t> calls;
  for (const int report : {0, 1}) {
    std::istringstream words(logs[report].get("calls"));
    for (std::string word; words >> word;) {
      const size_t equals = word.find('=');
      calls[word.substr(0, equals)] += (report == 0 ? -1 : 1) * std::stoll(word.substr(equals + 1));
    }
  }
  EXPECT_EQ(calls["new[]"], 6);
  EXPECT_EQ(calls["delete[]"], 6);
  EXPECT_EQ(calls["new"], 6) << "libstdc++'s new[] calls new, and that malloc";
  EXPECT_EQ(calls["delete"], 6);
  for (const char* inner : {"malloc", "aligned_alloc", "posix_memalign", "free"}) {
    EXPECT_EQ(calls[inner], 0) << inner;
  }
  EXPECT_EQ(logs[1].get("unknown-frees"), "0");
}

INSTANTIATE_TEST_SUITE_P(Allocators, OperatorCallsTest,
                         ::testing::Values("", "libjemalloc.so.2", "libtcmalloc.so.4"),
                         [](const auto& info) {
                           const std::string name = info.param;
                           return name.empty() ? "glibc" : name.substr(3, name.find('.') - 3);
                         });

TEST_F(AccountingTest, AllListsStacksThatRest) {
  std::map<int, std::map<std::string, Did>> phases;
  const std::vector<Memlog> logs = run("all", &phases);
  EXPECT_EQ(found(logs.at(0)), phases[1]);
  for (const auto& [name, did] : phases[1]) phases[2].try_emplace(name);
  EXPECT_EQ(found(logs.at(1)), phases[2]);
  EXPECT_EQ(found(logs.at(2)).size(), phases[1].size());
}

}  // namespace
}  // namespace mtrace::test
