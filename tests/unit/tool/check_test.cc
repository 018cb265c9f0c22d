// memlog check with programs: what passes, what fails and names the stack, and whose failure wins.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tool_test.h"
#include "view/analyze/filter.h"

namespace mtrace::test {
namespace {

constexpr char kProgram[] = R"(
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iostream>
#include <pwd.h>
#include <string>
static void* volatile kept;
__attribute__((noinline)) void forget() { kept = std::malloc(1234); }
int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  std::cout << "hello" << std::endl;
  if (what == "runtime") {
    std::setlocale(LC_ALL, "C.UTF-8");
    std::time_t now = 0;
    std::localtime(&now);
    ::getpwnam("root");
    for (int i = 0; i < 100; ++i) std::atexit([] {});
    std::getchar();
  }
  if (what == "leak" || what == "fail" || what == "crash") forget();
  if (what == "fail") return 3;
  if (what == "crash") std::abort();
  if (what == "child") return std::system("./app leak") == 0 ? 0 : 4;
}
)";

class Check : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new TemporaryDirectory;
    write_file(*directory_ / "app.cc", kProgram);
    shell("cd {} && {} -g -O1 -o app app.cc", directory_->path(), compiler());
  }
  static void TearDownTestSuite() {
    delete directory_;
    directory_ = nullptr;
  }
  // What `memlog check WORDS` and the program say, and the status.
  static std::string check(const std::string& words) {
    return shell("exec 2>&1 </dev/null; cd {}; {}/memlog check {}; echo $?", directory_->path(),
                 build_dir(), Script{words});
  }

  static TemporaryDirectory* directory_;
};

TemporaryDirectory* Check::directory_ = nullptr;

TEST_F(Check, MessagesOfTheProgramsTestsHaveNames) {
  if (kNoMemlogFromTheLibrary != nullptr) GTEST_SKIP() << kNoMemlogFromTheLibrary;
  const std::string out = check("-- " + shell_quoted(program("gtest_leaky")));
  const size_t message = out.find("The test leaves 1234 bytes more on the heap than it found.\n");
  ASSERT_NE(message, std::string::npos) << out;
  const std::string text = out.substr(message, out.find("Failure", message) - message);
  EXPECT_HAS(text, "\tsite_leaks_here(unsigned long)\tgtest_leaky.cc:17\t");
}

TEST_F(Check, AGoodProgramPasses) {
  const std::string out = check("-- ./app");
  EXPECT_EQ(out,
            "hello\nok: live: 0 bytes in 0 stacks, 0 bytes allowed\n"
            "... 2 that the C and C++ runtimes keep, net +76,800 bytes (--no-builtin)\n0\n");
}

TEST_F(Check, WhatRuntimesKeepIsOnTheList) {
  const std::string out = check("-- ./app runtime");
  EXPECT_TRUE(out.starts_with("hello\nok: live: 0 bytes in 0 stacks, 0 bytes allowed\n")) << out;
  const std::string all = check("--no-builtin --max-live 75K -- ./app");
  EXPECT_TRUE(all.starts_with("hello\nok: live: 76800 bytes in 2 stacks, 76800 bytes allowed\n"))
      << all;
  EXPECT_TRUE(check("--no-builtin --max-live 76799 -- ./app").ends_with("\n1\n"));
}

TEST_F(Check, ALeakFailsAndIsNamed) {
  const std::string out = check("-- ./app leak");
  EXPECT_TRUE(
      out.starts_with("hello\nFAILED: live: 1234 bytes in 1 stack, 0 bytes allowed\n\n"
                      "+1234 bytes  +1 block  100.0%"))
      << out;
  EXPECT_HAS(out, "\n    forget  app.cc:11\n    main  app.cc:");
  EXPECT_TRUE(out.ends_with("\n1\n")) << out;
  EXPECT_TRUE(check("--max-live 2K -- ./app leak").ends_with("\n0\n"));
  EXPECT_TRUE(check("-x function:^forget -- ./app leak").ends_with("\n0\n"));
}

TEST_F(Check, TheProgramsOwnFailureWins) {
  EXPECT_EQ(check("-- ./app fail"),
            "hello\nmemlog: check: ./app ended with status 3; its memory is not checked\n3\n");
  const std::string out = check("-- ./app crash");
  EXPECT_HAS(out, "memlog: check: ./app was killed by SIGABRT (Aborted)");
  EXPECT_TRUE(out.ends_with("\n134\n")) << out;
  EXPECT_TRUE(check("-- ./gone").ends_with("\n127\n"));
}

TEST_F(Check, ChildrenOnlyWhereTheyAreFollowed) {
  EXPECT_TRUE(check("-- ./app child").ends_with("\n0\n"));
  const std::string out = check("--follow app -- ./app child");
  EXPECT_HAS(out, "FAILED: live: 1234 bytes in 1 stack");
}

TEST_F(Check, WhatCannotBeTracedIsNotGood) {
  shell("cd {} && echo 'int main() {{}}' >s.cc && {} -static -o s s.cc", directory_->path(),
        compiler());
  EXPECT_EQ(check("-- ./s"),
            "memlog: ./s is statically linked: libmtrace.so cannot be loaded into it, so nothing "
            "is checked\n2\n");
}

TEST_F(Check, AgainstABaseline) {
  shell("cd {} && {}/memlog run -q -o base ./app >/dev/null 2>&1", directory_->path(), build_dir());
  EXPECT_TRUE(check("--baseline base -- ./app").ends_with("\n0\n"));
  const std::string out = check("--baseline base --max-growth 1K -- ./app leak");
  EXPECT_HAS(out, "FAILED: grown since the baseline: 1234 bytes in 1 stack, 1024 bytes allowed");
  EXPECT_TRUE(out.ends_with("\n1\n")) << out;
}

// It can be given to --suppressions again.
TEST_F(Check, TheBuiltInListIsASuppressionsFile) {
  EXPECT_GE(analyze::runtime_keeps().size(), 5u);
  write_file(*directory_ / "list", memlog({"check", "--print-builtin"}).out);
  EXPECT_TRUE(check("--no-builtin --suppressions list -- ./app").ends_with("\n0\n"));
}

}  // namespace
}  // namespace mtrace::test
