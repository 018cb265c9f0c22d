// The page of an event log, in a browser: see event_page.cjs.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "host_test.h"

namespace mtrace::test {
namespace {

// The most bytes that the blocks had at a time, and how many they were.
constexpr char kPeakQuery[] =
    "with changes as (select allocated_at at, size, 1 one from allocations union all "
    "select freed_at, -size, -1 from allocations where freed_at is not null), "
    "sums as (select at, sum(size) over (order by at, one desc rows unbounded preceding) live, "
    "sum(one) over (order by at, one desc rows unbounded preceding) blocks from changes) "
    "select printf('%,d bytes in %d blocks', live, blocks) from sums order by live desc limit 1";

class EventPageTest : public HostTest {
 protected:
  static std::string log() { return shop_log(); }
  std::string query(const std::string& text) {
    const Result result =
        expect_exit(run(tool({"sql", "--no-resolve", "--format", "csv", text, log()})));
    std::string line = lines_of(result.out).at(1);
    std::erase(line, '"');
    return line;
  }
};

TEST_F(EventPageTest, ShowsThePeakAndTheEnd) {
  const std::string modules = build_dir() + "/npm/node_modules";
  ASSERT_TRUE(fs::exists(modules + "/playwright-core")) << "make deps-test gets it";
  ASSERT_TRUE(fs::exists("/usr/bin/chromium")) << "make deps-test installs it";
  const std::string page = temp() + "/log.html";
  expect_exit(run(tool({"export", "-f", "html", "--no-resolve", "--events", log(), "-o", page})));
  const Result result = expect_exit(run(plain({"/bin/sh", "-c", "exec node \"$@\"", "node",
                                               source_dir() + "/tests/host/event_page.cjs", page},
                                              {{"NODE_PATH", modules}})));
  const nlohmann::json facts = nlohmann::json::parse(lines_of(result.out).back());
  EXPECT_EQ(facts["problems"], nlohmann::json::array());
  EXPECT_EQ(facts["opened"], nlohmann::json({"peak", "-1"})) << "the peak, not the exit";
  EXPECT_EQ(fmt::format("{} in {} blocks", facts["peak"].get<std::string>(), facts["bars"].dump()),
            query(kPeakQuery));
  for (const char* fact : {"sizes", "sizesAtEnd"}) {
    EXPECT_EQ(facts[fact], "Sizes are exact, from the event log.") << fact;
  }
  EXPECT_EQ(facts["reports"], nlohmann::json({"the peak", "report 5 of 5, the end of the log"}));
  EXPECT_EQ(facts["live"], query("select printf('%,d bytes', sum(size)) from allocations where "
                                 "freed_at is null"));
  EXPECT_GT(facts["boxes"], 3);
  EXPECT_EQ(facts["wider"], false);
}

}  // namespace
}  // namespace mtrace::test
