// What reports made from event logs say of cases that a program seldom makes.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "made_log.h"
#include "model/events/event_log.h"
#include "model/events/replay_memlog.h"
#include "model/events/replay_plan.h"
#include "model/profile/writer.h"
#include "model/recording/log_writer.h"
#include "tool_test.h"

namespace mtrace::test {
namespace {

// The value of a key in a memlog's header or trailer.
std::string value_of(const std::string& memlog, const std::string& key) {
  const std::string begin = "# " + key + ": ";
  const size_t at = memlog.find(begin);
  if (at == std::string::npos) return "";
  return memlog.substr(at + begin.size(), memlog.find('\n', at) - at - begin.size());
}

class ReplayedLog : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_ / name; }
  std::string report(const std::string& name) const {
    return profile::write(events::memlog_at(path(name), {}));
  }
  // Leaves out of the log what lives shorter than 100 ms.
  std::string cull(const std::string& name) {
    const std::string made = path(name + ".culled");
    const Outcome result = memlog({"strip", "--cull", "100ms", "-o", made, path(name)});
    EXPECT_EQ(result.out + result.err, "");
    return profile::write(events::memlog_at(made, {}));
  }

  TemporaryDirectory directory_;
};

// Writes the log anew, with the last event in a second file.
void rewrite_in_files(const std::string& from, const std::string& to) {
  size_t count = 0;
  {
    events::EventLog log(from);
    for (events::Event event; log.next(event);) ++count;
  }
  events::EventLog log(from);
  events::LogFile file(to, "made", 1);
  events::LogDefinitions definitions(log);
  events::LogWriter writer(std::string(log.head()), definitions, "",
                           [&](std::string one) { file.append(std::move(one)); });
  writer.keep_state();
  for (events::Event event; log.next(event);) {
    if (--count == 1) {
      EXPECT_TRUE(file.make_next());
      writer.begin_file([&] {
        file.finish();
        file.begin_next(1);
      });
    }
    writer.put(event);
  }
  writer.flush();
  EXPECT_EQ(file.finish(), 0);
}

// Of threads without a slot, which share a number.
void put_crossed_reallocs(MadeLog& log) {
  log.allocate(0, 0x1000, 10);
  log.allocate(0, 0x2000, 20);
  log.begin_realloc(0, 0x1000);
  log.begin_realloc(0, 0x2000);
  log.realloc(0, 0x1000, 0x3000, 30);
  log.realloc(0, 0x2000, 0x4000, 40);
}

TEST_F(ReplayedLog, CullsReallocsThatCross) {
  {
    MadeLog log(path("whole"));
    put_crossed_reallocs(log);
    log.free(0, 0x4000);
    log.wait(1000);
    log.free(0, 0x3000);
  }
  const std::string culled = cull("whole");
  EXPECT_EQ(value_of(culled, "allocated"), "100 bytes 4 blocks");
  EXPECT_EQ(value_of(culled, "live"), "0 bytes 0 blocks");
  EXPECT_EQ(value_of(culled, "unknown-frees"), "0");
  const Outcome kept = memlog({"events", "--no-resolve", path("whole.culled")});
  EXPECT_HAS(kept.out, " 10 usable=10");
  EXPECT_LACKS(kept.out, " 20 usable=20");
}

TEST_F(ReplayedLog, PerformsReallocsThatCross) {
  {
    MadeLog log(path("whole"));
    put_crossed_reallocs(log);
    log.begin_realloc(0, 0x3000);
    log.begin_realloc(0, 0x4000);
    log.fail_realloc(0, 0x3000);
    log.free(0, 0x4000, MadeLog::kRealloc);
  }
  events::EventLog log(path("whole"));
  const events::PlanFacts facts = events::make_replay_plan(path("whole"), log).facts;
  EXPECT_EQ(facts.live_peak, 70u);
  EXPECT_EQ(facts.live_end, 30u);
  EXPECT_EQ(facts.operations, 5u);
}

// What the entries allocated of which something was temporary, in the order of their sizes.
std::vector<std::string> temporary(const std::string& memlog) {
  std::vector<std::string> found;
  for (const Match& match :
       all_matches(memlog, "\tallocated=([0-9]+)\t[^\n]*\ttemporary=([0-9]+)\t")) {
    found.push_back(match[1] + ':' + match[2]);
  }
  std::sort(found.begin(), found.end());
  return found;
}

// What a thread allocated last and frees is temporary, whether the log has the blocks or not.
TEST_F(ReplayedLog, KnowsWhatIsTemporaryOfACulledLog) {
  for (const format::EventForm form : {format::EventForm::kFull, format::EventForm::kCompact}) {
    TemporaryDirectory directory;
    const auto strip = [&](const char* time, const std::string& name, const std::string& from) {
      const Outcome made =
          memlog({"strip", "--cull", time, "-o", directory / name, directory / from});
      EXPECT_EQ(made.out + made.err, "");
    };
    {
      MadeLog log(directory / "whole", {}, form);
      log.allocate(1, 0x1000, 1, 1);  // temporary, and short
      log.free(1, 0x1000);
      log.allocate(1, 0x2000, 2, 2);  // not, for the next one
      log.allocate(1, 0x3000, 3, 3);  // not: another thread frees it
      log.free(2, 0x3000);
      log.wait(1000);
      log.free(1, 0x2000);
      log.allocate(1, 0x4000, 4, 4);  // temporary, though another thread allocates
      log.allocate(2, 0x5000, 5, 5);  // as realloc ends it, no; what realloc gives, yes
      log.begin_realloc(2, 0x5000);
      log.realloc(2, 0x5000, 0x6000, 6, 6);
      log.free(2, 0x6000);
      log.wait(1000);
      log.free(1, 0x4000);
    }
    strip("100ms", "once", "whole");
    strip("100ms", "twice", "once");
    strip("10s", "all", "once");
    for (const char* name : {"whole", "once", "twice", "all"}) {
      SCOPED_TRACE(name);
      const std::string made = profile::write(events::memlog_at(directory / name, {}));
      EXPECT_EQ(value_of(made, "freed"), "21 bytes 6 blocks");
      EXPECT_EQ(temporary(made), (std::vector<std::string>{"1:1", "4:1", "6:1"}));
    }
  }
}

// MTRACE_TEMPORARY_MS of the process says what lives shortly.
TEST_F(ReplayedLog, KnowsHowLongShortIs) {
  const auto put_blocks = [](MadeLog& log) {
    for (const uint64_t lifetime : {5u, 7u, 9u, 150u}) {
      log.allocate(1, 0x1000, 10);
      log.wait(lifetime - 1);
      log.free(1, 0x1000);
    }
  };
  const auto short_lived = [](const std::string& memlog) {
    return memlog.substr(memlog.find("short-lived="), 13);
  };
  for (const auto& [name, library, expected] :
       {std::tuple{"own", "allocator=libc.so.6 MTRACE_TEMPORARY_MS=7 MTRACE_EVENTS=1", "2"},
        {"usual", "allocator=libc.so.6", "3"}}) {
    SCOPED_TRACE(name);
    {
      MadeLog log(path(name), {{format::kEventsLibrary, library}});
      put_blocks(log);
    }
    EXPECT_EQ(short_lived(report(name)), std::string("short-lived=") + expected);
    EXPECT_EQ(short_lived(cull(name)), std::string("short-lived=") + expected);
    rewrite_in_files(path(name), path(name + std::string("-files")));
    EXPECT_EQ(short_lived(report(name + std::string("-files"))),
              std::string("short-lived=") + expected);
  }
}

// A realloc that moved a block from before the log frees what nobody knows; one that failed does
// not.
TEST_F(ReplayedLog, CountsReallocsOfUnknownBlocks) {
  {
    MadeLog log(path("whole"));
    log.begin_realloc(1, 0x1000);
    log.fail_realloc(1, 0x1000);
    log.begin_realloc(1, 0x1000);
    log.realloc(1, 0x1000, 0x2000, 20);
    log.begin_realloc(1, 0x3000);
    log.free(1, 0x3000, MadeLog::kRealloc);
    log.begin_realloc(1, 0x2000);
    log.realloc(1, 0x2000, 0x2000, 30);
    log.begin_realloc(1, 0x4000);
    log.realloc(1, 0x4000, 0x4000, 40);
  }
  EXPECT_EQ(value_of(report("whole"), "unknown-frees"), "3");
  EXPECT_EQ(value_of(report("whole"), "live"), "70 bytes 2 blocks");
  EXPECT_EQ(value_of(cull("whole"), "unknown-frees"), "3");
  rewrite_in_files(path("whole"), path("files"));  // the last realloc ends in the second file
  EXPECT_EQ(value_of(report("files"), "unknown-frees"), "3");
  EXPECT_EQ(value_of(report("files"), "live"), "70 bytes 2 blocks");
}

}  // namespace
}  // namespace mtrace::test
