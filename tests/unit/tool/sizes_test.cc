// Sizes of blocks: classes of powers of two, and the average size of a stack's blocks in a report;
// and the forms by which answers become text.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "model/heap/heap_pages.h"
#include "tool_test.h"
#include "view/analyze/row.h"
#include "view/text/style.h"
#include "view/text/views_text.h"

namespace mtrace::test {
namespace {

using heap::SizeHistogram;

TEST(SizeHistogram, EachSizeIsInItsClass) {
  EXPECT_EQ(SizeHistogram::class_of(0), 0u);
  EXPECT_EQ(SizeHistogram::class_of(1), 1u);
  EXPECT_EQ(SizeHistogram::class_of(UINT64_MAX), 64u);
  for (size_t i = 0; i < SizeHistogram::kClasses; ++i) {
    EXPECT_EQ(SizeHistogram::class_of(SizeHistogram::least(i)), i);
    EXPECT_EQ(SizeHistogram::class_of(SizeHistogram::most(i)), i);
    if (i != 0) {
      EXPECT_EQ(SizeHistogram::least(i), SizeHistogram::most(i - 1) + 1);
    }
  }
  EXPECT_EQ(SizeHistogram::most(64), UINT64_MAX);
}

TEST(SizeHistogram, PrintsBarsOfTwoToTheLength) {
  SizeHistogram sizes;
  for (int i = 0; i < 1000; ++i) sizes.add(100);
  for (int i = 0; i < 3; ++i) sizes.add(0);
  sizes.add(16);
  EXPECT_EQ(text::sizes_line(sizes, text::Style()),
            "100016 bytes in 1,004 blocks of 99 bytes on average");
  EXPECT_EQ(text::sizes_text(sizes, text::Style()),
            "              block size        blocks           bytes\n"
            "                       0             3               0  ##\n"
            "                       1             0               0\n"
            "                    2..3             0               0\n"
            "                    4..7             0               0\n"
            "                   8..15             0               0\n"
            "                  16..31             1              16  #\n"
            "                  32..63             0               0\n"
            "                 64..127         1,000          100000  ##########\n");
  EXPECT_EQ(text::sizes_text(SizeHistogram(), text::Style()), "");
}

TEST(BlockSizes, StacksByBytesOrBySize) {
  heap::BlockSizes sizes;
  for (int i = 0; i < 10; ++i) sizes.add(7, 100);
  sizes.add(9, 500);
  sizes.add(3, 500);
  const auto order = [&](bool by_size) {
    std::vector<uint32_t> stacks;
    for (const heap::StackSizes& one : sizes.stacks(by_size)) stacks.push_back(one.stack);
    return stacks;
  };
  EXPECT_EQ(order(false), (std::vector<uint32_t>{7, 3, 9}));
  EXPECT_EQ(order(true), (std::vector<uint32_t>{3, 9, 7}));
}

TEST(BlockSize, IsKnownOfAnyReport) {
  analyze::Row row;
  EXPECT_EQ(analyze::block_size(row), 0u);
  row.bytes = 720;
  row.blocks = 10;
  EXPECT_EQ(analyze::block_size(row), 72u);
  row.bytes = -720;
  EXPECT_EQ(analyze::block_size(row), 0u) << "more blocks hold less: sizes differ";
  row.blocks = -10;
  EXPECT_EQ(analyze::block_size(row), 72u);
  row.frees = 4;
  row.freed_bytes = 400;
  EXPECT_EQ(analyze::block_size(row), 100u);
  row.allocations = 2;
  row.allocated_bytes = 1000;
  EXPECT_EQ(analyze::block_size(row), 500u);
}

TEST(AnswerForm, FillsInMembersWithTheirUnits) {
  const mtrace::json::Value facts = {
      {"name", "app"},  {"bytes", 1234567},    {"change", -2048},
      {"one", 1},       {"ns", 2560000},       {"ms", 1250},
      {"ratio", 1.257}, {"in", {{"side", 7}}}, {"list", mtrace::json::Value::array({"a", "b"})}};
  const auto filled = [&](const char* form) { return text::filled(form, facts); };
  EXPECT_EQ(filled("{name} ({in.side}): {bytes}"), "app (7): 1234567");
  EXPECT_EQ(filled("{bytes:,} {bytes:KiB} {bytes:size}"), "1,234,567 1,205 1234567 bytes");
  EXPECT_EQ(filled("{change:+size} {change:KiB} {bytes:+,}"), "-2048 bytes -2 +1,234,567");
  EXPECT_EQ(filled("{one:stack} {bytes:block} {bytes:blocks}"),
            "1 stack 1,234,567 blocks 1,234,567 blocks");
  EXPECT_EQ(filled("{ns:/1e6} {ms:s} {ratio:.2}"), "2.6 1.250 1.26");
  EXPECT_EQ(filled("{list:, }"), "a, b");
  text::Style style;
  style.units = true;
  EXPECT_EQ(text::filled("{bytes:size} {ms:time}", facts, style), "1.2 MiB 1.2 s");
}

TEST(AnswerForm, LeavesOutPartsWithoutAValue) {
  const mtrace::json::Value facts = {{"name", "app"}, {"yes", true}, {"no", false},
                                     {"none", 0},     {"empty", ""}, {"null", nullptr}};
  const auto filled = [&](const char* form) { return text::filled(form, facts); };
  EXPECT_EQ(filled("[{name}][{missing} x][{no} x][{none} x][{empty} x][{null} x]"), "app");
  EXPECT_EQ(filled("a[{yes} and b]"), "a and b");
  EXPECT_EQ(filled("[{name}[, {missing}]; {none}]"), "");
  EXPECT_EQ(filled("[{name}[, {missing}]]; {none}"), "app; 0");
  EXPECT_EQ(filled("{missing}{null}"), "");
}

TEST(AnswerForm, ColumnsAreAsWideAsTheirCells) {
  const mtrace::json::Value rows = mtrace::json::Value::array(
      {{{"n", 5}, {"name", "long name"}, {"at", "0x10"}}, {{"n", 1000}, {"name", "b"}}});
  EXPECT_EQ(text::table({{"n", "{n:,}"}, {"name", "{name}"}, {"place", "{at}"}}, rows),
            "    n  name       place\n"
            "    5  long name  0x10\n"
            "1,000  b\n");
  EXPECT_EQ(text::table({{"", "{n}"}, {"", "{name}"}}, rows, {},
                        [](size_t i) { return i == 0 ? "  below\n" : ""; }),
            "   5  long name\n  below\n1000  b\n");
}

}  // namespace
}  // namespace mtrace::test
