#include "base/writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <set>
#include <string>

#include "format/escape.h"

namespace mtrace {
namespace {

template <typename Write>
std::string written(Write write) {
  char buffer[512];
  Writer out(buffer, sizeof buffer);
  write(out);
  EXPECT_EQ(out.finish(), 0);
  return buffer;
}

TEST(Writer, Numbers) {
  EXPECT_EQ(written([](Writer& w) { w.number(0); }), "0");
  EXPECT_EQ(written([](Writer& w) { w.number(UINT64_MAX); }), "18446744073709551615");
  EXPECT_EQ(written([](Writer& w) { w.signed_number(0); }), "+0");
  EXPECT_EQ(written([](Writer& w) { w.signed_number(INT64_MIN); }), "-9223372036854775808");
  EXPECT_EQ(written([](Writer& w) { w.signed_number(INT64_MAX); }), "+9223372036854775807");
  EXPECT_EQ(written([](Writer& w) { w.hex(0); }), "0");
  EXPECT_EQ(written([](Writer& w) { w.hex(0x1af, 16); }), "00000000000001af");
  EXPECT_EQ(written([](Writer& w) { w.hex(UINT64_MAX); }), "ffffffffffffffff");
  EXPECT_EQ(written([](Writer& w) { w.padded(7, 3); }), "007");
}

TEST(Writer, TimeAgreesWithLibc) {
  for (const uint64_t seconds : {0ull, 951782399ull, 951782400ull, 1709164800ull, 1709251200ull,
                                 1795205731ull, 4102444799ull, 4107542400ull, 7258118400ull}) {
    const time_t when = static_cast<time_t>(seconds);
    char expected[64];
    strftime(expected, sizeof expected, "%Y-%m-%dT%H:%M:%S.000042Z", gmtime(&when));
    EXPECT_EQ(written([&](Writer& w) { w.time(seconds * 1'000'000'000u + 42'999); }), expected);
  }
}

TEST(Writer, EscapesWhatCouldForgeALine) {
  auto escaped = [](const std::string& text, const char* reserved) {
    return written([&](Writer& w) { w.escaped(text.data(), text.size(), reserved); });
  };
  EXPECT_EQ(escaped("plain (x)\xc3\xa9", ""), "plain (x)\xc3\xa9");
  EXPECT_EQ(escaped("a\tb\nc\\\x7f", ""), "a\\x09b\\x0ac\\\\\\x7f");
  EXPECT_EQ(escaped("\xc3\x28\xff\xed\xa0\x80", ""), "\\xc3(\\xff\\xed\\xa0\\x80");
  EXPECT_EQ(escaped("lib#2", format::kReservedModule), "lib\\x232");
  EXPECT_EQ(escaped("/usr/lib/a#\\b#c", format::kReservedModule), "/usr/lib/a\\x23\\\\b\\x23c");
  EXPECT_EQ(escaped("~\x7f", ""), "~\\x7f");
  EXPECT_EQ(escaped("a b'", format::kReservedArgument), "a\\x20b\\x27");
}

TEST(Writer, EveryByteStringSurvivesEscaping) {
  for (unsigned first = 0; first < 256; ++first) {
    for (unsigned second = 0; second < 256; ++second) {
      const std::string original = {static_cast<char>(first), static_cast<char>(second), 'z'};
      std::string text;
      format::escape(original.data(), original.size(), "# '",
                     [&](const char* unit, size_t size) { text.append(unit, size); });
      EXPECT_EQ(text.find_first_of("\n\t #'"), std::string::npos);
      std::string back;
      ASSERT_TRUE(format::unescape(text.data(), text.size(), [&](char c) { back += c; }));
      ASSERT_EQ(back, original);
    }
  }
}

TEST(Writer, TextThatDoesNotFitIsAnError) {
  char buffer[8];
  Writer out(buffer, sizeof buffer);
  out.text("12345678");
  EXPECT_EQ(out.finish(), -ENOBUFS);
  EXPECT_EQ(std::string(buffer), "1234567");
}

TEST(Writer, NeverCutsInsideAnEscapeOrACharacter) {
  for (size_t capacity = 1; capacity < 20; ++capacity) {
    char buffer[20];
    Writer out(buffer, capacity);
    out.escaped("a\001\xc3\xa9\\b", 6, "").text("z");
    const bool fits = out.finish() == 0;
    const std::string whole = "a\\x01\xc3\xa9\\\\bz";
    EXPECT_EQ(fits, capacity > whole.size());
    const std::string got = buffer;
    EXPECT_TRUE(whole.starts_with(got)) << got;
    // Each place at which it may end.
    EXPECT_TRUE(std::set<size_t>({0, 1, 5, 7, 9, 10, 11}).contains(got.size())) << got.size();
  }
}

TEST(Writer, WritesThroughASmallBuffer) {
  const int fd = memfd_create("writer", 0);
  ASSERT_GE(fd, 0);
  char buffer[16];
  Writer out(buffer, sizeof buffer, fd);
  std::string expected;
  for (int i = 0; i < 1000; ++i) {
    out.number(i).put(' ');
    expected += std::to_string(i) + ' ';
  }
  EXPECT_EQ(out.finish(), 0);
  std::string got(expected.size() + 10, '\0');
  got.resize(pread(fd, got.data(), got.size(), 0));
  EXPECT_EQ(got, expected);
  close(fd);
}

TEST(Writer, ReportsAWriteThatFails) {
  const int full = open("/dev/full", O_WRONLY);
  ASSERT_GE(full, 0);
  char buffer[16];
  Writer out(buffer, sizeof buffer, full);
  for (int i = 0; i < 100; ++i) out.text("0123456789");
  EXPECT_EQ(out.finish(), -ENOSPC);
  close(full);
}

}  // namespace
}  // namespace mtrace
