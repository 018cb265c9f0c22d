// Fuzz targets: what they did with their seeds, and short runs.
#include <functional>

#include "host_test.h"

namespace mtrace::test {
namespace {

class FuzzTargets : public HostTest {
 protected:
  // Calls action(target, its seeds) for each target: each has a directory of seeds.
  void each(const std::function<void(const std::string&, const Words&)>& action) {
    unsigned targets = 0;
    for (const std::string& name : names_in(corpus())) {
      const Words seeds = paths_in(corpus() + '/' + name);
      SCOPED_TRACE(name);
      EXPECT_FALSE(seeds.empty());
      action(name, seeds);
      ++targets;
    }
    EXPECT_GE(targets, 8u);
  }
  std::string corpus() const { return source_dir() + "/tests/fuzz/corpus"; }
};

using SeedsTest = FuzzTargets;
using FuzzTest = FuzzTargets;

TEST_F(SeedsTest, DoNoHarm) {
  each([&](const std::string& target, const Words& seeds) {
    Command command = plain({build_dir() + "/tests/seeds/" + target});
    command.env["FUZZ_SYSROOT"] = corpus() + "/elf";
    command.argv.insert(command.argv.end(), seeds.begin(), seeds.end());
    EXPECT_EQ(lines_of(expect_exit(run(command)).out).size(), seeds.size());
  });
}

TEST_F(FuzzTest, SeedsAndAFewThousandMore) {
  each([&](const std::string& target, const Words&) {
    const Result result =
        expect_exit(run(plain({source_dir() + "/tests/fuzz/run.sh",
                               build_dir() + "/fuzz/tests/seeds", "--runs", "3000", target})));
    const Match match = first_match(result.out, ": ([0-9]+) executions");
    ASSERT_FALSE(match.empty()) << result.out;
    EXPECT_GE(std::stoi(match[1]), 3000);
  });
}

}  // namespace
}  // namespace mtrace::test
