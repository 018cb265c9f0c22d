// What the library leaves alone of the state of a thread, and how much of its stack it uses.
#include "host_test.h"

namespace mtrace::test {
namespace {

class StateTest : public HostTest {
 protected:
  // Bytes below the frame of the caller, by "thread again malloc" and so on.
  std::map<std::string, long> depths(const std::string& depth) {
    const Result result = expect_exit(run(traced({program("state")}, {{"MTRACE_DEPTH", depth}})));
    EXPECT_TRUE(result.out.ends_with("fine\n")) << result.out;
    EXPECT_EQ(result.err, "");
    std::map<std::string, long> bytes;
    for (const std::string& line : lines_of(result.out)) {
      const size_t space = line.rfind(' ');
      if (space != std::string::npos) bytes[line.substr(0, space)] = std::stol(line.substr(space));
    }
    return bytes;
  }
};

// errno, the modes of the floating-point units, vector registers, registers that functions
// preserve, the 128 bytes below the stack pointer: the program itself looks.
TEST_F(StateTest, IsThePrograms) {
  expect_exit(run(plain({program("state")})));
  depths("256");
}

// A caller that is known: the least, and what matters in a thread with a small stack. A new caller
// has its frames' information compiled.
TEST_F(StateTest, LittleStackIsUsed) {
  const std::map<std::string, long> few = depths("256");
  for (const char* call : {"malloc", "calloc", "memalign", "realloc", "free"}) {
    const std::string name = call;
    EXPECT_LE(few.at("thread again " + name), 1104) << name;
    EXPECT_LE(few.at("fiber again " + name), 1408) << name;
    EXPECT_LE(few.at("thread first " + name), 2240) << name;
    EXPECT_LE(few.at("fiber first " + name), 2048) << name;
  }
}

// Where libc, or another allocator, stands a stack pointer that is no multiple of 16, so does the
// program under the library. (jemalloc's own functions do not.)
TEST_F(StateTest, CallersWithAMisalignedStack) {
  expect_exit(run(plain({program("misaligned")})));
  for (const char* allocator : {"", ":libtcmalloc_minimal.so.4", ":libjemalloc.so.2"}) {
    for (const char* option : {"MTRACE_DEPTH=128", "MTRACE_SAMPLE=200", "MTRACE_FILL=7"}) {
      Command command = traced({program("misaligned")}, setting(option));
      command.env["LD_PRELOAD"] += allocator;
      const std::string text = option;
      // Where nothing is recorded, the hook jumps on to the allocator, which does not stand it.
      if (text.starts_with("MTRACE_SAMPLE") && std::string(allocator).ends_with("jemalloc.so.2")) {
        continue;
      }
      const Result result = run(command);
      EXPECT_TRUE(result.exited(0)) << allocator << " " << option << ": " << result.how();
      EXPECT_EQ(result.out, "fine\n");
      const std::vector<Memlog> logs = logs_of(result.pid);
      ASSERT_EQ(logs.size(), 2u);  // one by the handler of the signal
      if (text.starts_with("MTRACE_SAMPLE")) continue;
      EXPECT_GE(logs[0].amount("live").bytes, 10 * 1000) << allocator;
    }
  }
}

}  // namespace
}  // namespace mtrace::test
