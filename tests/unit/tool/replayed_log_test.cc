// What reports made from event logs say of cases that a program seldom makes.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "made_log.h"
#include "model/events/event_log.h"
#include "model/events/replay_memlog.h"
#include "model/events/replay_plan.h"
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
  std::string report(const std::string& name) const { return events::memlog_at(path(name), {}); }
  // Leaves out of the log what lives shorter than 100 ms.
  std::string cull(const std::string& name) {
    const Outcome result = memlog({"strip", "--cull", "100ms", "-o", path("culled"), path(name)});
    EXPECT_EQ(result.out + result.err, "");
    return events::memlog_at(path("culled"), {});
  }

  TemporaryDirectory directory_;
};

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
  const Outcome kept = memlog({"events", "--no-resolve", path("culled")});
  EXPECT_NE(kept.out.find(" 10 usable=10"), std::string::npos) << kept.out;
  EXPECT_EQ(kept.out.find(" 20 usable=20"), std::string::npos) << kept.out;
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

}  // namespace
}  // namespace mtrace::test
