// Compressed reports, cut short, damaged, large, or while they are made. What commands make of
// them: transcripts/compressed.txt. The tests compress with the zstd program, so that the tool does
// not judge its own work.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "model/profile/reader.h"
#include "model/profile/writer.h"
#include "sample.h"
#include "tool_test.h"
#include "util/compression.h"
#include "view/reports/catalog.h"

namespace mtrace {
namespace {

namespace fs = std::filesystem;
using test::Outcome;

constexpr char kGolden[] = "tests/golden/";

class Compressed : public ::testing::Test {
 protected:
  // Copies reports of tests/golden to plain() and, compressed, to small(), under the same names.
  void SetUp() override {
    fs::create_directory(plain());
    fs::create_directory(small());
    for (const auto& item : fs::directory_iterator(test::source_dir() + '/' + kGolden)) {
      const std::string name = item.path().filename();
      if (!name.starts_with("app-5000-")) continue;
      fs::copy_file(item.path(), plain() + '/' + name);
      test::shell("zstd -q -o {}/{}.zst {}", small(), name, item.path().string());
    }
  }
  std::string plain() const { return directory_ / "plain"; }
  std::string small() const { return directory_ / "small"; }

  const test::TemporaryDirectory directory_;
};

// What a SIGKILL between the two steps leaves, and what another process sees between them.
TEST_F(Compressed, AReportOfARunIsFoundByItsContent) {
  const fs::path report = small() + "/app-5000-1.memlog";
  const std::string setting = "MTRACE_DEPTH=10";
  const auto found = [&] {
    return reports::reports_of_run(small(), 5000, "", setting).processes.size();
  };
  for (const auto& item : fs::directory_iterator(small())) {
    if (item.path() != report.string() + ".zst") fs::remove(item.path());
  }
  EXPECT_EQ(found(), 1u);
  fs::rename(report.string() + ".zst", report);
  EXPECT_EQ(found(), 1u);
}

// A signal that comes while a report is compressed: the report is as it was, or has its new name.
TEST_F(Compressed, AReportHasTheNameOfWhatItContains) {
  std::string text = util::read_text(plain() + "/app-5000-1.memlog").text;
  const std::string path = directory_ / "app-5000-1.memlog";
  const std::string large = text + std::string(64 << 20, '\n');
  int compressed = 0;
  for (int i = 0; i < 8; ++i) {
    fs::remove(path + ".zst");
    test::write_file(path, text);
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      const itimerval soon = {{}, {0, 1000}};
      ::setitimer(ITIMER_PROF, &soon, nullptr);
      profile::compress_report(path, large);
      for (;;) ::pause();
    }
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(WTERMSIG(status), SIGPROF);
    if (fs::exists(path)) {
      EXPECT_FALSE(util::read_text(path).compressed);
    } else {
      EXPECT_TRUE(util::read_text(path + ".zst").compressed);
      ++compressed;
    }
  }
  EXPECT_GT(compressed, 0);
}

// Cut anywhere and changed anywhere: either the text is what it was, or the file is refused, by
// name and with the line up to which it could be read.
TEST_F(Compressed, DamageIsFound) {
  const std::string file = directory_ / "f.memlog.zst";
  test::write_file(directory_ / "f.memlog", test::join(test::kLines));
  test::shell("zstd -q --rm {}", directory_ / "f.memlog");
  const std::string good = test::read_file(file);
  const auto read = [&](const std::string& bytes) {
    test::write_file(file, bytes);
    try {
      return profile::write(profile::read_path(file));
    } catch (const util::FormatError& error) {
      return std::string(error.what());
    }
  };
  ASSERT_EQ(read(good), test::join(test::kLines));
  for (size_t size = 1; size < good.size(); ++size) {
    const std::string said = read(good.substr(0, size));
    EXPECT_TRUE(said.starts_with(file + ':')) << size << ": " << said;
    if (size >= 4) {
      EXPECT_HAS(said, ": the compressed file is cut short: ");
    }
  }
  for (size_t at = 0; at < good.size(); ++at) {
    for (const int bit : {1, 16, 128}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ bit);
      const std::string said = read(bad);
      // Not every bit of a frame's header matters.
      if (said != test::join(test::kLines)) {
        EXPECT_TRUE(said.starts_with(file + ':')) << at << ": " << said;
      }
    }
  }
  EXPECT_HAS(read(good + "more"), "the compressed data is damaged (zstd: ");
}

class LargeCompressed : public ::testing::Test {
 protected:
  // 20 MB of text in small frames, so that a part can be read when the rest is not.
  void SetUp() override {
    std::string text = test::small_memlog({"f\t(0x1)"});
    const size_t delta = text.find("# delta: ");
    text.replace(delta, text.find('\n', delta) - delta, "# delta: +6400000 bytes +100000 blocks");
    const size_t begin = text.find("\n+") + 1;
    const size_t end = text.find("\n#", begin) + 1;
    std::string entries;
    for (int i = 0; i < 100000; ++i) {
      entries += fmt::format("+64\tblocks=+1\tlive=64\tstack={:016x}\n", i + 1);
      entries += fmt::format(
          "\tnamespace_of_some_length::function_{}(std::string const&, int)\tsource_{}.cc:{}\t"
          "(0x{:x})\n",
          i % 1000, i % 7, 1 + i % 100, i);
    }
    text.replace(begin, end - begin, entries);
    text_ = text;
    test::write_file(file_, text_);
  }
  const test::TemporaryDirectory directory_;
  const std::string file_ = directory_ / "app-4711-1.memlog";
  std::string text_;
};

TEST_F(LargeCompressed, IsReadInPieces) {
  ASSERT_GT(text_.size(), size_t{10} << 20);
  const std::string expected = test::memlog({"export", "-f", "csv", file_}).out;
  ASSERT_GT(std::count(expected.begin(), expected.end(), '\n'), 100000);
  // With and without the size in the frame's header.
  for (const char* how : {"zstd -q -f {0} -o {0}.zst", "zstd -q <{0} >{0}.zst"}) {
    test::shell(how, file_);
    ASSERT_LT(fs::file_size(file_ + ".zst"), size_t{2} << 20);
    profile::Pieces pieces(file_ + ".zst");
    for (int pass = 0; pass < 2; ++pass) {
      size_t entries = 0;
      size_t largest = 0;
      pieces.each([&](profile::Memlog& piece) {
        entries += piece.entries.size();
        largest = std::max(largest, piece.entries.size());
      });
      EXPECT_EQ(entries, 100000u);
      EXPECT_LE(largest, 4096u);
    }
    EXPECT_TRUE(test::memlog({"export", "-f", "csv", file_ + ".zst"}).out == expected);
  }
}

TEST_F(LargeCompressed, CutShortItTellsHowFarItCanBeRead) {
  test::shell("zstd -q --rm {}", file_);
  const std::string bytes = test::read_file(file_ + ".zst");
  test::write_file(file_ + ".zst", bytes.substr(0, bytes.size() / 2));
  const Outcome result = test::memlog({"export", "-f", "csv", file_ + ".zst"});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.out, "");
  const std::string before = file_ + ".zst:";
  ASSERT_TRUE(result.err.starts_with(before)) << result.err;
  // The zstd program gives the same beginning before it complains.
  const std::string readable = test::shell("zstd -dcq {}.zst 2>/dev/null || true", file_);
  EXPECT_GT(std::stoi(result.err.substr(before.size())),
            std::count(readable.begin(), readable.end(), '\n') - 4000);
  EXPECT_GT(std::stoi(result.err.substr(before.size())), 10000);
  EXPECT_TRUE(result.err.ends_with(
      ": the compressed file is cut short: only the lines up to this can be read\n"))
      << result.err;
}

}  // namespace
}  // namespace mtrace
