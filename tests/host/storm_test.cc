// Reports as fast as they can be asked for, in the middle of everything that a thread can be doing.
#include <chrono>

#include "host_test.h"

namespace mtrace::test {
namespace {

class StormTest : public HostTest {
 protected:
  void survive(long reports, unsigned seed, const std::map<std::string, std::string>& env) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Command command = traced({program("storm"), std::to_string(reports), program("plugin_first.so"),
                              std::to_string(seed)});
    for (const auto& [name, value] : env) command.env[name] = value;
    const Result result = expect_exit(run(command));
    EXPECT_EQ(result.err, "");
    const std::vector<Memlog> logs = logs_of(result.pid);
    Sites found = site_sums(logs, program("storm"), program("storm"));
    const Sites plugin = site_sums(logs, program("plugin_first.so"), program("plugin_first.so"));
    found.insert(plugin.begin(), plugin.end());
    EXPECT_EQ(found, told_sites(result.out).at(1)) << describe(found);
    for (const Memlog& log : logs) {
      EXPECT_HAS(log.get("lost"), " stacks=0 blocks=0 inflight=0");
    }
    reports_ += static_cast<long>(logs.size());
    for (const std::string& line : lines_of(result.out)) {
      std::istringstream words(line);
      std::string word;
      long kind;
      long count;
      if (!(words >> word)) continue;
      if (word == "done" && words >> kind >> count) operations_ += count;
      if (word == "sent" && words >> count) signals_ += count;
    }
    clear_out();
  }
  long reports_ = 0;
  long signals_ = 0;
  long operations_ = 0;
};

TEST_F(StormTest, OfReports) {
  const std::map<std::string, std::string> kWays[] = {
      {}, {{"MTRACE_DEPTH", "128"}}, {{"MTRACE_ENTRIES", "active"}}, {{"MTRACE_MMAP", "1"}}};
  for (unsigned seed = 1; seed <= 2 * static_cast<unsigned>(longer()) && !HasFailure(); ++seed) {
    survive(200, seed, kWays[seed % std::size(kWays)]);
  }
  printf("storm: %ld signals sent, %ld reports, %ld operations\n", signals_, reports_, operations_);
  EXPECT_GE(reports_, 400);
}

}  // namespace
}  // namespace mtrace::test
