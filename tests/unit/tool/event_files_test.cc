// Event logs of several files: the newest says of totals what one file would.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "format/event_log.h"
#include "model/events/event_log.h"
#include "model/events/replay_memlog.h"
#include "model/profile/writer.h"
#include "model/recording/log_writer.h"
#include "tool_test.h"

namespace mtrace::test {
namespace {

namespace fs = std::filesystem;

// Writes the log of the shop anew, as compact or full, and begins a file after each `every` events;
// 0: one file. Returns the events of the newest one.
size_t rewrite(const std::string& path, bool compact, size_t every) {
  events::FrameReader frames(shop_log());
  auto contents = std::make_unique<events::MadeContents>();
  std::string content;
  for (bool first = true; frames.next(content); first = false) {
    if (first && compact) {
      events::Column key;
      key.put_text(format::kEventsForm);
      key.put_text(format::kEventsCompact);
      content += key.bytes();
    }
    contents->add(content);
  }
  events::EventLog log(std::move(contents));
  events::LogFile file(path, "shop", 1);
  events::LogDefinitions definitions(log);
  events::LogWriter writer(std::string(log.head()), definitions, "",
                           [&](std::string one) { file.append(std::move(one)); });
  writer.keep_state();
  size_t count = 0;
  for (events::Event event; log.next(event);) {
    writer.put(event);
    if (++count != every) continue;
    EXPECT_TRUE(file.make_next());
    writer.begin_file([&] {
      file.finish();
      file.begin_next(1);
    });
    count = 0;
  }
  writer.flush();
  EXPECT_EQ(file.finish(), 0);
  return count;
}

// Without what each stack held at the peak, before the file began. The times of what was before a
// compact file are exact to 100 ns, and so those of one file differ by a millisecond.
std::string sums(const std::string& memlog, bool compact) {
  return replaced(memlog,
                  compact ? "\tpeak=[0-9]+|# (note|taken|peak): .*\n|\t(age|lifetime-[a-z]+)=[0-9]+"
                          : "\tpeak=[0-9]+|# note: .*\n",
                  "");
}

TEST(EventFiles, TheNewestHasTheSumsOfAll) {
  for (const bool compact : {false, true}) {
    TemporaryDirectory directory;
    const std::string whole = directory / "whole.events";
    rewrite(whole, compact, 0);
    const std::string expected = sums(profile::write(events::memlog_at(whole, {})), compact);
    ASSERT_NE(expected.find("temporary="), std::string::npos);
    for (const size_t every : {1000u, 77u, 13u}) {
      SCOPED_TRACE(every);
      const std::string path = directory / std::to_string(every);
      rewrite(path, compact, every);
      EXPECT_EQ(sums(profile::write(events::memlog_at(path, {})), compact), expected);
      EXPECT_TRUE(fs::exists(path + ".old1"));
      EXPECT_FALSE(fs::exists(path + ".old2"));
      EXPECT_EQ(events::EventLog(path).missing(), "");
    }
  }
}

// Before the log goes on, an older file says so, and what it says is right, too.
TEST(EventFiles, OlderOnesAreWhole) {
  TemporaryDirectory directory;
  const std::string path = directory / "log.events";
  rewrite(path, true, 200);
  events::EventLog older(path + ".old1");
  events::Event event;
  size_t inherited = 0;
  size_t others = 0;
  while (older.next(event)) {
    if (event.kind == events::Kind::kLeftOut) continue;
    ++(event.kind == events::Kind::kInherited ? inherited : others);
  }
  EXPECT_EQ(event.kind, events::Kind::kEnd);
  EXPECT_EQ(event.number, static_cast<uint64_t>(events::EndReason::kContinued));
  EXPECT_GT(inherited, 0u);
  EXPECT_EQ(others, 201u);
}

// A name that is taken: the present file goes on, and nothing in it says otherwise.
TEST(EventFiles, WithoutANextOneTheFileGoesOn) {
  TemporaryDirectory directory;
  const std::string path = directory / "a.events";
  fs::create_directories(path + ".new/taken");
  events::LogFile file(path, "a", 1);
  file.append("first");
  ASSERT_EQ(file.finish(), 0);
  EXPECT_FALSE(file.make_next());
  file.append("second");
  ASSERT_EQ(file.finish(), 0);
  EXPECT_EQ(shell("zstd -qdc < {}", path), "firstsecond");
}

TEST(EventFiles, AreRenamedAsTheyGetOld) {
  TemporaryDirectory directory;
  const std::string path = directory / "a.events";
  events::LogFile file(path, "a", 1);
  for (const char* content : {"first", "second", "third", "fourth"}) {
    file.append(content);
    ASSERT_EQ(file.finish(), 0);
    if (std::string(content) == "fourth") continue;
    ASSERT_TRUE(file.make_next());
    file.begin_next(2);
  }
  const auto content_of = [](const std::string& name) { return shell("zstd -qdc < {}", name); };
  EXPECT_EQ(content_of(path), "fourth");
  EXPECT_EQ(content_of(path + ".old1"), "third");
  EXPECT_EQ(content_of(path + ".old2"), "second");
  EXPECT_FALSE(fs::exists(path + ".old3"));
}

}  // namespace
}  // namespace mtrace::test
