// Programs that are built with a sanitizer: the library stands aside before the sanitizer has
// started, and says so.
#include "host_test.h"

namespace mtrace::test {
namespace {

struct Build {
  const char* program;
  const char* name;
};
constexpr Build kBuilds[] = {
    {"sanitized.gcc.address", "AddressSanitizer"}, {"sanitized.gcc.leak", "LeakSanitizer"},
    {"sanitized.gcc.thread", "ThreadSanitizer"},   {"sanitized.clang.address", "AddressSanitizer"},
    {"sanitized.clang.leak", "LeakSanitizer"},     {"sanitized.clang.thread", "ThreadSanitizer"},
    {"sanitized.clang.memory", "MemorySanitizer"}};

class SanitizerTest : public HostTest, public ::testing::WithParamInterface<Build> {
 protected:
  std::string line() const {
    return "mtrace: not covered: " + program(GetParam().program) + " is built with " +
           GetParam().name + "; nothing that it allocates is counted\n";
  }
};

// The line that sums up what was found.
std::string summary(const std::string& text) {
  const size_t at = text.find("SUMMARY: ");
  return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
}

TEST_P(SanitizerTest, StandsAside) {
  const std::string path = program(GetParam().program);
  for (const char* mode : {"none", "leak"}) {
    const Result alone = run(plain({path, mode}));
    // Not the symbolizer, which may outlive it.
    const Result result = run(traced({path, mode}, {{"MTRACE_FOLLOW", GetParam().program}}));
    EXPECT_EQ(result.how(), alone.how()) << result.err;
    EXPECT_EQ(result.out, alone.out);
    EXPECT_TRUE(result.err.starts_with(line())) << result.err;
    EXPECT_EQ(summary(result.err), summary(alone.err)) << result.err;
    EXPECT_EQ(result.err == line(), alone.err.empty()) << result.err;
  }
  EXPECT_TRUE(all_logs().empty());
}

// A signal that would have written a report does nothing; memlog says why. Nor is it attached to.
TEST_P(SanitizerTest, IsLeftAlone) {
  for (const Words& words : {Words{"report", "is not traced: "}, {"attach", ""}}) {
    const Words argv = {program(GetParam().program), "wait"};
    Ready process(words[0] == "report" ? traced(argv) : plain(argv));
    if (words[0] == "report") process.send(SIGUSR1);
    const Result result = run(plain({memlog_tool(), words[0], process.id()}));
    EXPECT_FALSE(result.exited(0)) << result.out;
    EXPECT_HAS(result.err, words[1] + "is built with " + GetParam().name +
                               ": what it allocates is not covered");
    EXPECT_EQ(process.wait().out, "ready\nfine\n");
  }
}

INSTANTIATE_TEST_SUITE_P(Builds, SanitizerTest, ::testing::ValuesIn(kBuilds), [](const auto& info) {
  std::string name = info.param.program;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

// memlog run and memlog check.
TEST_F(HostTest, SanitizedProgramIsRunAndNotJudged) {
  const std::string path = program("sanitized.clang.address");
  const Result ran = expect_exit(run(plain({memlog_tool(), "run", "--output", out(), "--", path})));
  EXPECT_EQ(ran.out, "fine\n");
  EXPECT_HAS(ran.err, "is built with AddressSanitizer");
  expect_exit(run(plain({memlog_tool(), "check", "--", path})), 2);
}

}  // namespace
}  // namespace mtrace::test
