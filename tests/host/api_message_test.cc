// The message of a failed savepoint check: what it says, and who puts the names in.
#include <sys/wait.h>

#include "host_test.h"

namespace mtrace::test {
namespace {

class ApiMessageTest : public HostTest {
 protected:
  Command asserting(const std::string& manner, const std::string& how) const {
    return traced({program("api_assert"), manner, how});
  }
  // A tool of our own in place of memlog.
  std::string tool(const std::string& script) const {
    const std::string path = temp() + "/tool";
    write_file(path, "#!/bin/sh\n" + script);
    chmod(path.c_str(), 0700);
    return path;
  }
  static bool aborted(const Result& result) {
    return WIFSIGNALED(result.status) && WTERMSIG(result.status) == SIGABRT;
  }
  static std::string function_of(const std::string& line) {
    const size_t offset = line.find("api_assert+0x");
    if (offset == std::string::npos) return "";
    static const Symbols symbols(program("api_assert"));
    return symbols.at(std::stoull(line.substr(offset + 13), nullptr, 16));
  }
  // Names by a script: what the message is then, and how many modules stood in the raw text.
  void expect_raw(const Result& result) const {
    expect_exit(result);
    EXPECT_EQ(result.out, "grown 3996\nafter\n");
    const Words lines = lines_of(result.err);
    ASSERT_GE(lines.size(), 8u) << result.err;
    EXPECT_EQ(lines[0], "mtrace: +3996 bytes +1 blocks live since savepoint the phase, of which:");
    EXPECT_EQ(lines[1], "+4000 bytes +1 blocks");
    EXPECT_EQ(function_of(lines[2]), "site_grows") << lines[2];
    EXPECT_EQ(function_of(lines[3]), "main") << lines[3];
    EXPECT_TRUE(lines.back().starts_with("# module: /")) << lines.back();
  }
};

TEST_F(ApiMessageTest, NothingIsSaidWhenTheHeapHasShrunk) {
  for (const char* manner : {"name", "handle"}) {
    const Result result = expect_exit(run(asserting(manner, "shrink")));
    EXPECT_EQ(result.out, "after\n");
    EXPECT_EQ(result.err, "");
  }
}

TEST_F(ApiMessageTest, AnAssertionThatFailsAborts) {
  for (const char* manner : {"name", "handle"}) {
    const Result result = run(asserting(manner, "grow"));
    EXPECT_TRUE(aborted(result)) << result.how();
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(result.err.starts_with(
        "mtrace: +3996 bytes +1 blocks live since savepoint the phase, of which:\n"))
        << result.err;
  }
}

TEST_F(ApiMessageTest, ACheckThatFailsGoesOn) {
  for (const char* manner : {"name", "handle"}) expect_raw(run(asserting(manner, "check")));
}

TEST_F(ApiMessageTest, TheFiveLargestStacksStandThere) {
  const Result result = run(asserting("name", "many"));
  EXPECT_TRUE(aborted(result)) << result.how();
  Words sites;
  Words amounts;
  const Words lines = lines_of(result.err);
  for (size_t i = 1; i + 1 < lines.size(); ++i) {
    if (!lines[i].starts_with("+")) continue;
    amounts.push_back(lines[i]);
    sites.push_back(function_of(lines[i + 1]));
  }
  // site_grows has two call sites, and the 96 bytes are larger than those of the nine.
  EXPECT_EQ(sites,
            (Words{"site_grows", "site_grows", "site_many_9", "site_many_8", "site_many_7"}));
  EXPECT_EQ(amounts, (Words{"+4000 bytes +1 blocks", "+96 bytes +1 blocks", "+90 bytes +1 blocks",
                            "+80 bytes +1 blocks", "+70 bytes +1 blocks"}));
  EXPECT_HAS(result.err, "\nand 6 more stacks that grew\n");
}

TEST_F(ApiMessageTest, TheToolPutsNamesIn) {
  const Result result = expect_exit(
      run(with(asserting("name", "check"),
               {{"MTRACE_RESOLVER",
                 tool("[ \"$1\" = decode ] || exit 3\n"
                      "env > environment; ls -l /proc/self/fd > descriptors\n"
                      "sed -e 's/^\\t(.*api_assert+0x.*/\\tNAMED/' -e '/^# module/d'\n")}})));
  EXPECT_EQ(result.out, "grown 3996\nafter\n");
  const Words lines = lines_of(result.err);
  ASSERT_GE(lines.size(), 4u) << result.err;
  EXPECT_EQ(lines[0], "mtrace: +3996 bytes +1 blocks live since savepoint the phase, of which:");
  EXPECT_EQ(lines[1], "+4000 bytes +1 blocks");
  EXPECT_EQ(lines[2], "\tNAMED");
  EXPECT_EQ(lines[3], "\tNAMED");
  EXPECT_LACKS(result.err, "api_assert+");
  EXPECT_LACKS(read_file(temp() + "/environment"), "LD_PRELOAD");
  // 0 to 2, and the one that ls opens. (The first line is "total 0".)
  EXPECT_LE(lines_of(read_file(temp() + "/descriptors")).size(), 6u)
      << read_file(temp() + "/descriptors");
}

TEST_F(ApiMessageTest, WithoutAUsableToolTheRawTextStands) {
  const Words scripts = {"exit 3\n", "echo half a text; exit 1\n", "exit 0\n", "kill -9 $$\n",
                         "#\nexec /nonexistent\n"};
  for (const std::string& script : scripts) {
    expect_raw(run(with(asserting("name", "check"), {{"MTRACE_RESOLVER", tool(script)}})));
  }
  expect_raw(run(with(asserting("name", "check"), {{"MTRACE_RESOLVER", "/nonexistent"}})));
}

TEST_F(ApiMessageTest, AToolThatHangsIsNotWaitedFor) {
  expect_raw(
      run(with(asserting("name", "check"),
               {{"MTRACE_RESOLVER", tool("[ \"$1\" = decode ] || exit 3\nexec sleep 1000\n")}})));
}

TEST_F(ApiMessageTest, MemlogDecodes) {
  const Result result = expect_exit(run(named({program("api_assert"), "name", "check"})));
  const Words lines = lines_of(result.err);
  ASSERT_GE(lines.size(), 4u) << result.err;
  EXPECT_TRUE(lines[2].starts_with("\tsite_grows")) << result.err;
  EXPECT_HAS(lines[2], "api_assert.c:") << result.err;
  EXPECT_TRUE(lines[3].starts_with("\tmain")) << result.err;
}

}  // namespace
}  // namespace mtrace::test
