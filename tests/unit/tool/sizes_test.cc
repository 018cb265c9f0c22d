// Sizes of blocks: classes of powers of two, and the average size of a stack's blocks in a report.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tool_test.h"
#include "view/analyze/row.h"
#include "view/heap/block_sizes.h"
#include "view/text/views_text.h"

namespace mtrace::test {
namespace {

using analyze::SizeHistogram;

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
  analyze::BlockSizes sizes;
  for (int i = 0; i < 10; ++i) sizes.add(7, 100);
  sizes.add(9, 500);
  sizes.add(3, 500);
  const auto order = [&](bool by_size) {
    std::vector<uint32_t> stacks;
    for (const analyze::StackSizes& one : sizes.stacks(by_size)) stacks.push_back(one.stack);
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

// Of the file: 5406720 / 1024, 8000 / 4 and so on, from its own lines.
TEST(BlockSize, SortsAReport) {
  const std::string file = source_dir() + "/tests/golden/app-4600-1.memlog";
  const Outcome result = memlog({"show", "--by", "size", "--json", file});
  ASSERT_EQ(result.status, 0) << result.err;
  uint64_t last = UINT64_MAX;
  size_t count = 0;
  const nlohmann::json answer = nlohmann::json::parse(result.out);
  for (const auto& stack : answer["reports"][0]["stacks"]) {
    if (stack["kind"] != "heap") continue;
    const uint64_t allocated = stack.value("allocated_blocks", uint64_t{0});
    const uint64_t size = allocated != 0
                              ? stack["allocated_bytes"].get<uint64_t>() / allocated
                              : stack["bytes"].get<uint64_t>() / stack["blocks"].get<uint64_t>();
    EXPECT_LE(size, last);
    last = size;
    ++count;
  }
  EXPECT_EQ(count, 3u);
  EXPECT_NE(memlog({"show", "--by", "size", file}).out.find("5280 bytes a block"),
            std::string::npos);
}

TEST(Sizes, TakesAProcess) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"show", "--sizes"},
                                             {"show", "--sizes", "--sum", "1"},
                                             {"show", "--sizes", "1", "2"},
                                             {"show", "--sizes", "--by", "age", "1"}}) {
    EXPECT_EQ(memlog(words).status, 2);
  }
  EXPECT_EQ(memlog({"show", "--sizes", "there-is-no-such-process"}).status, 1);
}

}  // namespace
}  // namespace mtrace::test
