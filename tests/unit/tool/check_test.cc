// memlog check with a program that has tests. Other programs: transcripts/check_program.txt.
#include <gtest/gtest.h>

#include "tool_test.h"

namespace mtrace::test {
namespace {

TEST(Check, MessagesOfTheProgramsTestsHaveNames) {
  if (kNoMemlogFromTheLibrary != nullptr) GTEST_SKIP() << kNoMemlogFromTheLibrary;
  const std::string out = shell("unset GTEST_FILTER; {} check -- {} 2>&1 || true", memlog_tool(),
                                program("gtest_leaky"));
  const size_t message = out.find("The test leaves 1234 bytes more on the heap than it found.\n");
  ASSERT_NE(message, std::string::npos) << out;
  const std::string text = out.substr(message, out.find("Failure", message) - message);
  EXPECT_HAS(text, "\tsite_leaks_here(unsigned long)\tgtest_leaky.cc:16\t");
}

}  // namespace
}  // namespace mtrace::test
