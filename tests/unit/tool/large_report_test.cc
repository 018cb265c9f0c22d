// A large report is read a piece at a time, and the answers are those of one that is held whole: of
// the same bytes by the standard input.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "tool_test.h"

namespace mtrace {
namespace {

using test::Outcome;

constexpr int kStacks = 9000;  // more than a piece, and together more than 8 MiB
constexpr int kFrames = 12;

std::string entry(int number, int64_t bytes) {
  std::string text = fmt::format("{:+}\tblocks={:+}\tlive={}\tstack={:016x}\n", bytes,
                                 bytes < 0 ? -1 : 1, bytes < 0 ? 0 : bytes, number + 1);
  for (int i = 0; i < kFrames; ++i) {
    text += fmt::format(
        "\tnamespace_of_some_length::function_{}(std::string const&, int)\t"
        "source_{}.cc:{}\t(/usr/bin/app+0x{:x})\n",
        (number >> i) % 1000, i, i + 1, 4096 * i + (number >> i));
  }
  return text;
}

std::string large_memlog() {
  std::string entries;
  int64_t sum = 0;
  int64_t blocks = 0;
  for (int i = 0; i < kStacks; ++i) {
    const int64_t bytes = 16 * int64_t{kStacks / 4 - i / 3};
    entries += entry(i, bytes);
    sum += bytes;
    blocks += bytes < 0 ? -1 : 1;
  }
  entries += "@mmap\t+4096\tblocks=+1\n\tmap\t(/usr/bin/app+0x1)\n@mmap\t-1\tblocks=-1\n";
  return fmt::format(
             "# memlog 2\n# program: /usr/bin/app\n# pid: 4711\n# seq: 1\n# trigger: signal\n"
             "# started: 2026-11-20T20:15:00.000000Z\n# taken: 2026-11-20T20:15:31.123456Z\n"
             "# delta: {:+} bytes {:+} blocks\n# live: {} bytes {} blocks\n"
             "# lost: frames=0 stacks=0 blocks=0 inflight=0\n",
             sum, blocks, sum, blocks) +
         entries + "# module: /usr/bin/app build-id=5f1e base=0x1000\n# resolved: yes\n# end\n";
}

class LargeReport : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_GT(text_.size(), size_t{8} << 20);
    test::write_file(file_, text_);
  }

  // As `memlog words... - <file`.
  Outcome whole(std::vector<std::string> words) const {
    const int saved = ::dup(0);
    const int input = ::open(file_.c_str(), O_RDONLY);
    ::dup2(input, 0);
    words.emplace_back("-");
    Outcome result = test::memlog(words);
    ::dup2(saved, 0);
    ::close(input);
    ::close(saved);
    return result;
  }

  Outcome large(std::vector<std::string> words) const {
    words.push_back(file_);
    return test::memlog(words);
  }

  const test::TemporaryDirectory directory_;
  const std::string file_ = directory_ / "app-4711-1.memlog";
  const std::string text_ = large_memlog();
};

TEST_F(LargeReport, SaysWhatAWholeOneSays) {
  const std::vector<std::vector<std::string>> commands = {
      {"show"},
      {"show", "-n", "0", "--oneline"},
      {"show", "-n", "3", "--by", "live", "--shrank"},
      {"show", "--depth", "2", "--exclude", "function:function_7[(]"},
      {"show", "--by", "age"},
      {"tree", "--invert"},
      {"export", "-f", "csv"},
      {"export", "-f", "jsonl", "--include", "function:function_7[(]"},
      {"export", "-f", "folded"},
      {"export", "-f", "folded", "--by", "live"},
      {"export", "-f", "massif"}};
  for (const auto& words : commands) {
    const Outcome one = large(words);
    const Outcome other = whole(words);
    EXPECT_EQ(one.status, 0) << one.err;
    EXPECT_FALSE(one.out.empty());
    EXPECT_TRUE(one.out == other.out) << words[0] << ' ' << words.back();
    EXPECT_EQ(one.err, other.err);
  }
}

TEST_F(LargeReport, CountsWhatItDoesNotShow) {
  const Outcome shown = large({"show", "-n", "2"});
  EXPECT_HAS(shown.out, "... 8,998 more, net ");
}

TEST_F(LargeReport, DamagedAtItsEndLeavesNothingWritten) {
  const std::string bad = text_.substr(0, text_.size() - 6);  // without "# end\n"
  test::write_file(file_, bad);
  const auto lines = std::count(bad.begin(), bad.end(), '\n');
  for (const char* format : {"csv", "jsonl", "folded"}) {
    const std::string output = directory_ / format;
    const Outcome printed = large({"export", "-f", format});
    EXPECT_EQ(printed.status, 2);
    EXPECT_EQ(printed.out, "");
    EXPECT_EQ(
        printed.err,
        fmt::format("{0}:{1}: the file ends without \"# end\"; what comes before: memlog show "
                    "--partial {0}\n",
                    file_, lines));
    EXPECT_EQ(large({"export", "-f", format, "-o", output}).status, 2);
    EXPECT_NE(::access(output.c_str(), F_OK), 0);
  }
}

TEST_F(LargeReport, GoesIntoAFileAsToTheStandardOutput) {
  const std::string output = directory_ / "out";
  const Outcome written = large({"export", "-f", "csv", "-o", output});
  EXPECT_EQ(written.status, 0) << written.err;
  EXPECT_TRUE(test::read_file(output) == whole({"export", "-f", "csv"}).out);
}

}  // namespace
}  // namespace mtrace
