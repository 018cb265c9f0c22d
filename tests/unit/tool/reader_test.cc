// The reader takes a proper memlog without loss and refuses everything else, saying where.
#include "model/profile/reader.h"

#include <gtest/gtest.h>

#include "model/profile/writer.h"
#include "sample.h"
#include "tool_test.h"
#include "util/error.h"

namespace mtrace::profile {
namespace {

using test::error_of;
using test::join;
using test::kLines;

TEST(Reader, TakesEveryPart) {
  const Memlog memlog = read("f", join(kLines));
  EXPECT_EQ(memlog.header.program, "/usr/bin/app");
  EXPECT_EQ(memlog.header.pid, 4711);
  EXPECT_EQ(memlog.header.seq, 2);
  EXPECT_EQ(memlog.header.label, "after-warmup");
  EXPECT_EQ(memlog.header.delta, (Total{60, 2}));
  EXPECT_EQ(memlog.header.live, (Total{1893421, 20417}));
  EXPECT_EQ(memlog.header.host, "web3");
  EXPECT_EQ(memlog.header.boot_id, "6a0e8a3e-0000-4000-8000-000000000000");
  EXPECT_EQ(memlog.header.rss, 5000000u);
  ASSERT_EQ(memlog.entries.size(), 3u);
  const Entry& entry = memlog.entries[0];
  EXPECT_EQ(entry.bytes, 100);
  EXPECT_EQ(entry.blocks, 3);
  EXPECT_EQ(entry.live, 126720u);
  EXPECT_EQ(entry.stack, 0x5f3e1a90c2d4b718u);
  EXPECT_TRUE(entry.cut);
  ASSERT_EQ(entry.frames.size(), 5u);
  EXPECT_EQ(entry.frames[0].function, "g_realloc");
  EXPECT_EQ(entry.frames[0].source, "gmem.c:164");
  EXPECT_EQ(entry.frames[0].offset, 0x5f3e1u);
  EXPECT_EQ(entry.frames[1].place, Place::kInlined);
  EXPECT_EQ(memlog.modules[entry.frames[3].module].generation, 2u);
  EXPECT_EQ(memlog.modules[entry.frames[3].module].build_id, std::string("\x00\xff", 2));
  EXPECT_EQ(entry.frames[4].place, Place::kAddress);
  EXPECT_EQ(memlog.entries[2].kind, "mmap");
}

std::string with_tails() {
  auto lines = kLines;
  lines[19] = "\t^ tail=00000000000000aa";
  lines[22] +=
      "\n\t(0x9)\n\t^ tail=00000000000000bb\n# tail: 00000000000000aa\n\tf\t(inlined)\n"
      "\tg\ta.c:2\t(0x10)\n\t^ tail=00000000000000bb\n# tail: 00000000000000bb\n"
      "\tmain\t(/l+0x20)\n\t(0x30)";
  return join(lines);
}

TEST(Reader, TailsAreTheRestsOfStacks) {
  Memlog memlog = read("f", with_tails());
  ASSERT_EQ(memlog.entries.size(), 3u);
  const Frames& first = memlog.entries[0].frames;
  std::string functions;
  for (const Frame& frame : first) functions += frame.function.text() + ' ';
  EXPECT_EQ(functions, "g_realloc g_slist_copy g_closure_notify   f g main  ");
  ASSERT_EQ(first.size(), 9u);
  EXPECT_EQ(first[7].offset, 0x20u);
  EXPECT_EQ(memlog.modules[first[7].module].path, "/l");
  EXPECT_FALSE(memlog.entries[0].cut);
  EXPECT_EQ(memlog.entries[2].frames.size(), 3u);
  EXPECT_EQ(memlog.entries[2].frames.rest(), first.rest()->rest()) << "it is there once";
  EXPECT_EQ(write(memlog), with_tails());
  // Changed, an entry has its frames alone.
  memlog.entries[2].frames.edit()[1].offset = 0x21;
  EXPECT_EQ(memlog.entries[2].frames.rest(), nullptr);
  EXPECT_EQ(first[7].offset, 0x20u);
}

// The entries come in pieces, before the lines of their tails.
TEST(Reader, TailsAreThereInPieces) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/a.memlog";
  test::write_file(path, with_tails());
  Pieces pieces(path);
  std::vector<Entry> entries;
  pieces.each([&](Memlog& piece) {
    for (Entry& entry : piece.entries) entries.push_back(entry);
  });
  const Memlog whole = read("f", with_tails());
  ASSERT_EQ(entries.size(), whole.entries.size());
  for (size_t i = 0; i < entries.size(); ++i) EXPECT_EQ(entries[i].frames, whole.entries[i].frames);
}

// What comes after the end of a file that was cut short is not there, and the stacks say so.
TEST(Reader, StacksWhoseTailsAreMissingAreCut) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/a.memlog";
  const std::string text = with_tails();
  const size_t outer = text.find('\n', text.find("# tail: 00000000000000bb")) + 1;
  const size_t inner = text.find('\n', text.find("# tail: 00000000000000aa")) + 1;
  for (const auto& [size, frames] : {std::pair{outer, 7u}, std::pair{inner, 5u}}) {
    test::write_file(path, text.substr(0, size));
    std::optional<CutShort> cut;
    const Memlog memlog = read_partly(path, cut);
    ASSERT_TRUE(cut);
    ASSERT_EQ(memlog.entries.size(), 3u);
    EXPECT_EQ(memlog.entries[0].frames.size(), frames);
    EXPECT_TRUE(memlog.entries[0].cut);
    EXPECT_TRUE(memlog.entries[2].cut);
  }
}

TEST(Reader, VersionOneHasNoTails) {
  EXPECT_EQ(read("f", test::replaced(1, "# memlog 1")).entries.size(), 3u);
  EXPECT_EQ(write(read("f", test::replaced(1, "# memlog 1"))), join(kLines));
}

TEST(Reader, WriterGivesBackTheSameBytes) {
  EXPECT_EQ(write(read("f", join(kLines))), join(kLines));
  const std::string hostile = test::small_memlog(
      {"operator(\\x09)\ta\\\\b c:12\t(/a b/\\x0a\\x23\\xff (x)+0x1f+0x2)", "(x)\t(/l+0x0)"},
      "# note: a \\x1b[31m note\n# module: /l base=0x0\n");
  EXPECT_EQ(write(read("f", hostile)), hostile);
  EXPECT_EQ(read("f", hostile).modules[0].path, "/a b/\n#\xff (x)+0x1f");
}

TEST(Reader, ModulePathMayLookLikeFields) {
  const Memlog memlog =
      read("f", test::small_memlog({"(/a b=c base=0x1+0x2)"},
                                   "# module: /a b=c base=0x1 build-id=ab base=0x10 new=1\n"));
  ASSERT_EQ(memlog.modules.size(), 1u);
  EXPECT_EQ(memlog.modules[0].path, "/a b=c base=0x1");
  EXPECT_EQ(memlog.modules[0].base, 0x10u);
  EXPECT_EQ(memlog.modules[0].build_id, "\xab");
}

TEST(Reader, KeepsTheExtremes) {
  auto lines = kLines;
  lines[9] = "# delta: -1 bytes +0 blocks";
  lines[13] = "+9223372036854775807\tblocks=+1\tlive=0\tstack=ffffffffffffffff";
  lines[20] = "-9223372036854775808\tblocks=-1\tlive=9223372036854775807\tstack=0000000000000001";
  const Memlog memlog = read("f", join(lines));
  EXPECT_EQ(memlog.entries[1].bytes, INT64_MIN);
  EXPECT_EQ(write(memlog), join(lines));
}

TEST(Reader, TakesTheExampleOfTheDocumentation) {
  const std::string text = test::read_file(test::source_dir() + "/doc/memlog-format.md");
  const size_t begin = text.find("```\n# memlog 2\n") + 4;
  const std::string example = text.substr(begin, text.find("```", begin) - begin);
  const Memlog memlog = read("doc", example);
  EXPECT_EQ(memlog.entries.size(), 2u);
  EXPECT_EQ(write(memlog), example);
}

// Whatever a memlog is cut to, only the whole one is taken.
TEST(Reader, NoPrefixIsTaken) {
  const std::string text = join(kLines);
  for (size_t size = 0; size < text.size(); ++size) {
    ASSERT_NE(error_of(text.substr(0, size)), "no error") << size;
  }
}

}  // namespace
}  // namespace mtrace::profile
