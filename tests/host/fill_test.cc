// MTRACE_FILL: what memory holds that has no content yet, with each allocator.
#include "host_test.h"

namespace mtrace::test {
namespace {

class FillTest : public HostTest, public ::testing::WithParamInterface<const char*> {
 protected:
  Command fills(const std::string& value, const Words& arguments) const {
    return with_allocator(traced(joined({program("fills")}, arguments)), value);
  }
  static Command with_allocator(Command command, const std::string& value) {
    const std::string allocator = GetParam();
    if (!allocator.empty()) command.env["LD_PRELOAD"] += ":" + allocator;
    if (allocator.find("jemalloc") != std::string::npos) command.env["TRUTH_LENIENT"] = "1";
    if (!value.empty()) command.env["MTRACE_FILL"] = value;
    return command;
  }
  static void expect_fine(const Result& result, const std::string& what) {
    EXPECT_TRUE(result.exited(0)) << what << ": " << result.how() << result.out << result.err;
    EXPECT_TRUE(result.out.ends_with("fine\n")) << what << ": " << result.out;
  }
};

TEST_P(FillTest, EveryFunction) {
  const std::vector<std::pair<std::string, std::string>> kValues = {
      {"zero", "0"}, {"0", "0"},      {"0xa5", "165"}, {"165", "165"},
      {"0x1", "1"},  {"0xFf", "255"}, {"255", "255"},  {"0x00a5", "165"}};
  for (const auto& [value, byte] : kValues) {
    const Result result = run(fills(value, {byte}));
    expect_fine(result, value);
    EXPECT_EQ(result.err, "") << value;
    EXPECT_HAS(only_log(result.pid).get("library"), "MTRACE_FILL=" + value);
  }
}

TEST_P(FillTest, NothingUnlessAskedFor) {
  for (const char* value : {"", "none"}) {
    EXPECT_EQ(run(fills(value, {"none"})).out,
              run(plain({program("fills"), "none"}, {{"LD_PRELOAD", GetParam()}})).out)
        << value;
  }
}

// Content beyond what was asked for, where the program has looked how much there is.
TEST_P(FillTest, AllThatIsUsableMayBeContent) {
  expect_fine(run(fills("0xa5", {"165", "usable"})), "usable");
}

TEST_P(FillTest, ErrorsAreThoseOfTheAllocator) {
  const Result expected = run(plain({program("errors")}, {{"LD_PRELOAD", GetParam()}}));
  for (const char* value : {"0xa5", "zero"}) {
    const Result result = run(with_allocator(traced({program("errors")}), value));
    EXPECT_EQ(result.out, expected.out);
    EXPECT_EQ(result.status, expected.status) << result.how();
  }
}

TEST_P(FillTest, BadValues) {
  for (const char* value : {"256", "0x", "-1", "abc", "0x100", "1 ", "0xg", "", "0xa5a5a5a5a5a5"}) {
    const Result result = run(fills(value[0] == '\0' ? "\"\"" : value, {"none"}));
    expect_fine(result, value);
    ASSERT_EQ(lines_of(result.err).size(), 1u) << value << ": " << result.err;
    EXPECT_TRUE(result.err.starts_with("mtrace: MTRACE_FILL=")) << result.err;
    EXPECT_TRUE(result.err.ends_with(" is not none, zero or a number from 0 to 255; using none\n"))
        << result.err;
    EXPECT_HAS(result.err, value);
    EXPECT_EQ(result.out, run(fills("none", {"none"})).out);
  }
}

INSTANTIATE_TEST_SUITE_P(Allocators, FillTest,
                         ::testing::Values("", "libjemalloc.so.2", "libtcmalloc.so.4",
                                           "libtcmalloc_minimal.so.4"),
                         named_after);

}  // namespace
}  // namespace mtrace::test
