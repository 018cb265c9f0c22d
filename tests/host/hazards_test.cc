// What broke others: doc/internals/hazards.md lists them, each with its tests.
#include "host_test.h"

namespace mtrace::test {
namespace {

class HazardTest : public HostTest {
 protected:
  std::string directory() const { return program("").substr(0, program("").size() - 1); }
};

TEST_F(HazardTest, MoreThanThereIsBeforeTheAllocator) {
  // With LD_BIND_NOW the library is not even relocated then.
  for (const char* const now : {"", "1"}) {
    const Result result = expect_exit(expect_same(traced(
        {program("hazards"), "hungry"},
        {{"LD_PRELOAD", library() + ":" + program("plugin_hungry.so")}, {"LD_BIND_NOW", now}})));
    EXPECT_EQ(logs_of(result.pid).size(), 1u);
  }
}

// In each way in which free takes short cuts.
TEST_F(HazardTest, MemoryFromBeforeTheAllocatorNeverGetsToIt) {
  for (const auto& [option, value] : {std::pair{"MTRACE_SAMPLE", "0"},
                                      {"MTRACE_SAMPLE", "1G"},
                                      {"MTRACE_SAMPLE", "64"},
                                      {"MTRACE_UNKNOWN", "stacks"}}) {
    SCOPED_TRACE(std::string(option) + '=' + value);
    expect_exit(run(traced({program("hazards"), "early"},
                           {{"LD_PRELOAD", library() + ":" + program("plugin_hungry.so")},
                            {"LD_BIND_NOW", "1"},
                            {option, value}})));
  }
}

TEST_F(HazardTest, ThreadLocalMemoryOfLateLibraries) {
  for (const char* mode : {"late_tls", "static_tls"}) {
    expect_exit(expect_same(traced({program("hazards"), mode, directory()})));
  }
}

// The program's unwinder is the one that it has without the library, and nothing else is loaded.
TEST_F(HazardTest, UnwinderOfTheProgram) {
  const Result with = run(named({program("hazards"), "unwinder"}));
  const Result without = run(plain({program("hazards"), "unwinder"}));
  expect_exit(with);
  // In whatever order they lie in memory.
  const auto sorted = [](const std::string& text) {
    Words lines = lines_of(text);
    std::sort(lines.begin(), lines.end());
    return lines;
  };
  Words lines = sorted(with.out);
  EXPECT_EQ(std::erase(lines, "loaded libmtrace.so"), 1u);
  EXPECT_EQ(lines, sorted(without.out));
}

TEST_F(HazardTest, SignalsGoToTheProgramsThreads) {
  const Result result = expect_exit(expect_same(named({program("hazards"), "signals"})));
  EXPECT_HAS(result.out, "handled 200\n");
  EXPECT_HAS(result.out, "Threads:\t1\n");
}

// Loaded by the program itself: a second time, where it is preloaded, or late, where it does
// nothing by itself.
TEST_F(HazardTest, LoadedByTheProgram) {
  EXPECT_EQ(expect_exit(run(traced({program("hazards"), "loads_it", library()}))).out, "fine\n");
  Command late = traced({program("hazards"), "loads_it", library()});
  late.env.erase("LD_PRELOAD");
  const Result result = expect_exit(run(late));
  EXPECT_EQ(result.out, "fine\n");
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(all_logs().size(), 1u) << "of the first alone";
}

// Programs that use the trigger signal themselves keep it: node opens its debugger.
TEST_F(HazardTest, NodeKeepsTheSignal) {
  Ready process(traced({"/usr/bin/node", "-e",
                        "process.on('SIGUSR1', () => { console.log('mine'); process.exit(5); });"
                        "console.log('ready'); setInterval(() => 0, 1000);"}));
  process.send(SIGUSR1);
  const Result result = expect_exit(process.wait(), 5);
  EXPECT_EQ(result.out, "ready\nmine\n");
  const Memlog log = only_log(result.pid);
  EXPECT_EQ(log.get("trigger"), "exit");
  EXPECT_EQ(log.get("note"), "the program uses the signal that writes reports itself");
}

}  // namespace
}  // namespace mtrace::test
