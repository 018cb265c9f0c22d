// Reports of a process read one after the other: what is not read again must be as if it were.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/profile/reader.h"
#include "model/profile/writer.h"
#include "tool_test.h"
#include "util/error.h"

namespace mtrace::test {
namespace {

using profile::KnownStacks;
using profile::Memlog;

constexpr char kModule[] = "# module: /usr/bin/app build-id=aa01 base=0x1000\n";

// The report as it is read by itself.
void expect_same(const Memlog& read, const std::string& text) {
  const Memlog alone = profile::read("f", text);
  EXPECT_EQ(profile::write(read), text);
  ASSERT_EQ(read.entries.size(), alone.entries.size());
  for (size_t i = 0; i < read.entries.size(); ++i) {
    const profile::Entry& entry = read.entries[i];
    EXPECT_EQ(entry.cut, alone.entries[i].cut);
    ASSERT_EQ(entry.frames.size(), alone.entries[i].frames.size());
    for (size_t j = 0; j < entry.frames.size(); ++j) {
      const profile::Frame& frame = entry.frames[j];
      EXPECT_EQ(frame.function, alone.entries[i].frames[j].function);
      if (frame.place != profile::Place::kModule) continue;
      const profile::Module& module = read.modules[frame.module];
      EXPECT_EQ(module, alone.modules[alone.entries[i].frames[j].module]);
    }
  }
}

TEST(KnownStacks, ASeriesIsReadAsEachOfItAlone) {
  KnownStacks known;
  const std::vector<std::vector<std::string>> series = {
      {"f\ta.c:1\t(/usr/bin/app+0x10)", "main\t(/usr/bin/app+0x20)"},
      {"f\ta.c:1\t(/usr/bin/app+0x10)", "main\t(/usr/bin/app+0x20)"},
      // Another name, one frame more, one less, cut.
      {"g\ta.c:1\t(/usr/bin/app+0x10)", "main\t(/usr/bin/app+0x20)"},
      {"f\ta.c:1\t(/usr/bin/app+0x10)", "main\t(/usr/bin/app+0x20)", "start\t(/usr/bin/app+0x30)"},
      {"f\ta.c:1\t(/usr/bin/app+0x10)"},
      {"f\ta.c:1\t(/usr/bin/app+0x10)", "main\t(/usr/bin/app+0x20)", "..."},
      {"f\ta.c:1\t(/usr/bin/app+0x10)", "main\t(/usr/bin/app+0x20)"},
      {"(/usr/lib/other.so+0x5)", "main\t(/usr/bin/app+0x20)"},
  };
  int64_t seq = 0;
  for (const auto& frames : series) {
    const std::string text = small_memlog(frames, kModule, ++seq);
    expect_same(profile::read("f", text, &known), text);
  }
}

TEST(KnownStacks, TheSameTextIsOneList) {
  KnownStacks known;
  const std::vector<std::string> frames = {"f\t(/usr/bin/app+0x10)"};
  const Memlog first = profile::read("f", small_memlog(frames, kModule, 1), &known);
  const Memlog second = profile::read("f", small_memlog(frames, kModule, 2), &known);
  EXPECT_NE(first.entries[0].frames.number(), 0u);
  EXPECT_EQ(first.entries[0].frames.number(), second.entries[0].frames.number());
  EXPECT_EQ(&first.entries[0].frames[0], &second.entries[0].frames[0]);
  profile::Memlog changed = second;
  changed.entries[0].frames.edit()[0].function = "other";
  EXPECT_EQ(second.entries[0].frames[0].function, "f");
  EXPECT_EQ(changed.entries[0].frames.number(), 0u);
}

TEST(KnownStacks, ADamagedReportLeavesNothingBehind) {
  KnownStacks known;
  const std::vector<std::string> frames = {"f\t(/usr/bin/app+0x10)"};
  const std::string text = small_memlog(frames, kModule, 1);
  const std::string stack = "stack=00000000000000aa\n\tf\t(/usr/lib/gone.so+0x10)\n";
  const size_t entry = text.find("stack=");
  const std::string broken = text.substr(0, entry) + stack + "nonsense\n";
  EXPECT_THROW(profile::read("f", broken, &known), util::FormatError);
  for (int64_t seq = 2; seq < 4; ++seq) {
    const std::string next = small_memlog(frames, kModule, seq);
    expect_same(profile::read("f", next, &known), next);
  }
  // Line numbers are right behind what was not read.
  std::string bad = small_memlog(frames, kModule, 4);
  bad.insert(bad.find("# module"), "nonsense\n");
  try {
    profile::read("f", bad, &known);
    FAIL();
  } catch (const util::FormatError& error) {
    EXPECT_EQ(error.line(), 13u);
  }
}

TEST(KnownStacks, AnotherProcessBeginsAnew) {
  KnownStacks known;
  const std::string one = small_memlog({"f\t(/usr/bin/app+0x10)"}, kModule, 1);
  std::string other = one;
  other.replace(other.find("4711"), 4, "4712");
  other.replace(other.find("aa01"), 4, "bb02");
  const Memlog first = profile::read("f", one, &known);
  const Memlog second = profile::read("f", other, &known);
  EXPECT_NE(first.entries[0].frames.number(), second.entries[0].frames.number());
  EXPECT_EQ(second.modules[0].build_id, "\xbb\x02");
}

}  // namespace
}  // namespace mtrace::test
