// What filters take for a match, and what the ranges and sizes of the command line mean.
#include "view/analyze/filter.h"

#include <gtest/gtest.h>

#include "model/profile/reader.h"
#include "tool_test.h"
#include "view/analyze/table.h"
#include "view/text/style.h"

namespace mtrace {
namespace {

using analyze::FramePattern;
using analyze::StackPattern;

const std::vector<profile::Module> kModules = {{"/usr/lib/libfoo.so.1", 1, "", 0, false}};

profile::Frame frame(const std::string& function, const std::string& source = "") {
  return {profile::Place::kModule, 0, 0x10, function, source};
}

bool leak(const std::string& pattern, const profile::Frame& one) {
  return FramePattern::leak(pattern).matches(profile::Frames::List{one}, 0, kModules);
}

// As the documentation of LeakSanitizer's suppressions says.
TEST(FramePattern, LeakMatchesAPartOfAnyName) {
  EXPECT_TRUE(leak("put", frame("cache_put(int)")));
  EXPECT_TRUE(leak("^cache", frame("cache_put(int)")));
  EXPECT_FALSE(leak("^put", frame("cache_put(int)")));
  EXPECT_TRUE(leak("c*put", frame("cache_put(int)")));
  EXPECT_FALSE(leak("p*c", frame("cache_put(int)")));
  EXPECT_TRUE(leak("^cache_*int)$", frame("cache_put(int)")));
  EXPECT_FALSE(leak("put$", frame("cache_put(int)")));
  EXPECT_TRUE(leak("put(int)", frame("cache_put(int)")));  // no regular expression
  EXPECT_FALSE(leak("cache.put", frame("cache_put(int)")));
  EXPECT_TRUE(leak("foo.c$", frame("f", "foo.c:31")));
  EXPECT_TRUE(leak("libfoo.so", frame("f")));
  EXPECT_FALSE(leak("*bar", frame("f", "foo.c:31")));
}

TEST(FramePattern, NamesMatchAsTheyStandAndAsTheyAreShown) {
  const profile::Frame one = frame("f(std::vector<int, std::allocator<int> >&)", "foo.cc:7");
  for (const char* pattern : {"std::allocator", "vector<int>&", "function:^f\\(", "source:^foo.cc$",
                              "source:[:]7$", "module:libfoo\\.so", "foo.cc:7"}) {
    EXPECT_TRUE(FramePattern(pattern).matches(profile::Frames::List{one}, 0, kModules)) << pattern;
  }
  for (const char* pattern : {"function:foo.cc", "source:libfoo", "module:f\\(", "^vector",
                              "function::f", "source::foo"}) {
    EXPECT_FALSE(FramePattern(pattern).matches(profile::Frames::List{one}, 0, kModules)) << pattern;
  }
  // A namespace, not a kind of pattern.
  EXPECT_TRUE(
      FramePattern("module::g").matches(profile::Frames::List{frame("module::g()")}, 0, kModules));
}

TEST(StackPattern, FramesAreMatchedFromTheInnermost) {
  const std::vector<profile::Frame> stack = {frame("a"), frame("b"), frame("c")};
  EXPECT_TRUE(StackPattern("frames:a < b").matches(stack, kModules));
  EXPECT_TRUE(StackPattern("frames:a < function:b < c").matches(stack, kModules));
  EXPECT_FALSE(StackPattern("frames:b < c").matches(stack, kModules));
  EXPECT_FALSE(StackPattern("frames:a < c").matches(stack, kModules));
  EXPECT_FALSE(StackPattern("frames:a < b < c < .").matches(stack, kModules));
  EXPECT_TRUE(StackPattern("any:^c$").matches(stack, kModules));
}

TEST(Quantity, SizesTimesAndSpans) {
  EXPECT_EQ(text::read_size("0"), 0u);
  EXPECT_EQ(text::read_size("64K"), 65536u);
  EXPECT_EQ(text::read_size("1.5M"), 1572864u);
  EXPECT_EQ(text::read_size("2GiB"), uint64_t{2} << 30);
  for (const char* bad : {"", "K", "-1", "1e3", "12X", "1 K", "0x10", "inf", "99999999T"}) {
    EXPECT_EQ(text::read_size(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(text::read_duration("10", 1000), 10000u);
  EXPECT_EQ(text::read_duration("1.5s", 1), 1500u);
  EXPECT_EQ(text::read_duration("2min", 1), 120000u);
  EXPECT_EQ(text::read_duration("1m", 1), std::nullopt);  // minutes or milliseconds?
  const auto size = [](std::string_view text) { return text::read_size(text); };
  const auto expect_span = [&](const char* text, uint64_t least, uint64_t most) {
    const auto span = text::read_span(text, size);
    ASSERT_TRUE(span.has_value()) << text;
    EXPECT_EQ(span->least, least) << text;
    EXPECT_EQ(span->most, most) << text;
  };
  expect_span("3..5", 3, 5);
  expect_span("3..", 3, UINT64_MAX);
  expect_span("..5", 0, 5);
  expect_span("7", 7, 7);
  for (const char* bad : {"", "..", "5..3", "a..b", "1..2..3"}) {
    EXPECT_FALSE(text::read_span(bad, size).has_value()) << bad;
  }
}

// Counted by addresses: what is inlined goes with the frame that it is inlined into.
TEST(FrameRange, KeepsInlinedFramesWithTheirs) {
  const profile::Memlog memlog = profile::read(
      "f", test::small_memlog({"a\ta.c:1\t(inlined)", "b\ta.c:2\t(/m+0x1)", "c\ta.c:3\t(inlined)",
                               "d\ta.c:4\t(/m+0x2)", "e\t(/m+0x3)"}));
  const auto functions = [&](analyze::FrameRange range) {
    analyze::Table table;
    table.merge(memlog, range);
    std::string text;
    for (const profile::Frame& one : table.rows()[0].frames) text += one.function;
    return text + (table.rows()[0].cut ? "." : "");
  };
  EXPECT_EQ(functions({1, 1}), "ab.");
  EXPECT_EQ(functions({2, 2}), "cd.");
  EXPECT_EQ(functions({2, 0}), "cde");
  EXPECT_EQ(functions({3, 9}), "e");
  EXPECT_EQ(functions({4, 0}), ".");
}

}  // namespace
}  // namespace mtrace
