// What each stack did between two reports, against a program that knows.
#include <array>

#include "host_test.h"

namespace mtrace::test {
namespace {

using Did = std::array<int64_t, 4>;  // allocations, bytes, frees, bytes
using Doings = std::map<std::string, Did>;

class AccountingTest : public HostTest {
 protected:
  // By the innermost function whose name begins with site_.
  static Doings found(const Memlog& log) {
    constexpr const char* kKeys[] = {"allocs", "allocated", "frees", "freed"};
    Doings sites;
    for (const Entry& entry : log.entries) {
      // What plugin_allocator.so allocates to answer the library.
      if (!entry.frames.empty() && entry.frames[0].function == "malloc_usable_size") continue;
      const auto frame =
          std::find_if(entry.frames.begin(), entry.frames.end(),
                       [](const Frame& one) { return one.function.starts_with("site_"); });
      if (frame == entry.frames.end()) continue;
      Did& did = sites[frame->function];
      for (size_t i = 0; i < did.size(); ++i) {
        const auto count = entry.counts.find(kKeys[i]);
        if (count != entry.counts.end()) did[i] += count->second;
      }
    }
    return sites;
  }
  // Its reports; and, in told_, what the program says of the time before each.
  std::vector<Memlog> reports(const Settings& more) {
    const Result result = expect_exit(run(named({program("accounting")}, more)));
    std::istringstream lines(result.out);
    std::string word, name;
    int phase;
    Did did;
    while (lines >> word >> phase >> name >> did[0] >> did[1] >> did[2] >> did[3]) {
      told_[phase][name] = did;
    }
    EXPECT_EQ(told_.size(), 2u);
    return logs_of("accounting", 3);
  }
  std::map<int, Doings> told_;
};

TEST_F(AccountingTest, ActiveListsAllThatWasDone) {
  const std::vector<Memlog> logs = reports({{"MTRACE_ENTRIES", "active"}});
  EXPECT_EQ(found(logs[0]), told_[1]);
  EXPECT_EQ(found(logs[1]), told_[2]);
  EXPECT_EQ(found(logs[2]), Doings());
}

TEST_F(AccountingTest, NetLeavesOutWhatLeftNothingBehind) {
  const std::vector<Memlog> logs = reports({{"MTRACE_ENTRIES", "net"}});
  for (int phase : {1, 2}) {
    told_[phase].erase("site_none_kept");
    EXPECT_EQ(found(logs[static_cast<size_t>(phase) - 1]), told_[phase]);
  }
}

TEST_F(AccountingTest, AllListsStacksThatRest) {
  const std::vector<Memlog> logs = reports({{"MTRACE_ENTRIES", "all"}});
  EXPECT_EQ(found(logs[0]), told_[1]);
  for (const auto& [name, did] : told_[1]) told_[2].try_emplace(name);
  EXPECT_EQ(found(logs[1]), told_[2]);
  EXPECT_EQ(found(logs[2]).size(), told_[1].size());
}

// calloc and realloc then pass the hooks twice, and the question for the slack once more.
TEST_F(AccountingTest, CountsOnceWithAnAllocatorThatCallsItself) {
  const std::vector<Memlog> logs =
      reports({{"MTRACE_ENTRIES", "active"},
               {"LD_PRELOAD", library() + ":" + program("plugin_allocator.so")}});
  EXPECT_EQ(found(logs[0]), told_[1]);
  EXPECT_EQ(found(logs[1]), told_[2]);
  EXPECT_EQ(logs[1].get("unknown-frees"), "0");
  EXPECT_HAS(logs[1].get("calls"), " calloc=1 realloc=10 ");
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
                         named_after);

}  // namespace
}  // namespace mtrace::test
