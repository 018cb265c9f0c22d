// memlog export of an event log, to the formats that have each block: held against SQL over the
// same log, and against the tools that read the formats.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "model/events/event_log.h"
#include "tool_test.h"

namespace mtrace::test {
namespace {

using nlohmann::json;

std::vector<int64_t> numbers(const std::string& query) {
  const Outcome result = memlog({"sql", "--no-resolve", "--format", "csv", query, shop_log()});
  EXPECT_EQ(result.status, 0) << query << '\n' << result.err;
  std::vector<int64_t> numbers;
  std::stringstream line(result.out.substr(result.out.find('\n') + 1));
  for (std::string number; std::getline(line, number, ',');) numbers.push_back(std::stoll(number));
  return numbers;
}

std::string exported(const std::string& format, std::vector<std::string> options = {}) {
  options.insert(options.begin(), {"export", "-f", format, "--no-resolve", "--events", shop_log()});
  const Outcome result = memlog(options);
  EXPECT_EQ(result.status, 0) << result.err;
  return result.out;
}

// Of the blocks that meet the condition: allocations, frees, bytes that stay, the peak, and the
// milliseconds of the first allocation and of the last free since the log began.
struct LogTruth {
  int64_t allocations, frees, left, peak, first, last;

  explicit LogTruth(const std::string& condition) {
    const uint64_t began = events::EventLog(shop_log()).header().started;
    const std::vector<int64_t> sums = numbers(
        fmt::format("select count(*), count(freed_at), sum(size) filter (where freed_at is null), "
                    "(min(allocated_at) - {0}) / 1000000, (max(freed_at) - {0}) / 1000000 "
                    "from allocations where {1}",
                    began, condition));
    allocations = sums.at(0);
    frees = sums.at(1);
    left = sums.at(2);
    first = sums.at(3);
    last = sums.at(4);
    peak = numbers(
               "select max(live) from (select sum(change) over (order by at, change) as live "
               "from (select allocated_at as at, size as change from allocations where " +
               condition +
               " union all select freed_at, -size from allocations where freed_at is not null "
               "and " +
               condition + "))")
               .at(0);
  }
};

struct Choice {
  std::vector<std::string> options;
  std::string condition;
};
const std::vector<Choice>& choices() {
  static const std::vector<Choice> all = {
      {{}, "1"},
      {{"--size", "100..300"}, "size between 100 and 300"},
      {{"--lifetime", "1ms.."}, "(freed_at is null or freed_at - allocated_at >= 1000000)"}};
  return all;
}

TEST(EventExport, HeaptrackHasEachEventAtItsTime) {
  TemporaryDirectory directory;
  for (const Choice& choice : choices()) {
    SCOPED_TRACE(choice.condition);
    const LogTruth truth(choice.condition);
    const std::string text = exported("heaptrack", choice.options);
    int64_t time = 0, first = -1, last_free = -1, allocations = 0, frees = 0;
    std::stringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("c ")) time = std::stoll(line.substr(2), nullptr, 16);
      if (line.starts_with("+ ") && ++allocations == 1) first = time;
      if (line.starts_with("- ")) {
        ++frees;
        last_free = time;
      }
    }
    EXPECT_EQ(allocations, truth.allocations);
    EXPECT_EQ(frees, truth.frees);
    EXPECT_EQ(first, truth.first);
    EXPECT_EQ(last_free, truth.last);
    write_file(directory / "log.heaptrack", text);
    const std::string read = shell("heaptrack_print {}/log.heaptrack", directory.path());
    const auto has = [&](const std::string& line) { EXPECT_HAS(read, line) << line; };
    has(fmt::format("calls to allocation functions: {} (", truth.allocations));
    const auto bytes = [](int64_t number) {
      return number < 1000 ? fmt::format("{}B", number) : fmt::format("{:.2f}K", number / 1000.0);
    };
    has("total memory leaked: " + bytes(truth.left));
    has("peak heap memory consumption: " + bytes(truth.peak));
  }
}

TEST(EventExport, MassifHasThePeakAndTheEnd) {
  for (const Choice& choice : choices()) {
    SCOPED_TRACE(choice.condition);
    const LogTruth truth(choice.condition);
    const std::string text = exported("massif", choice.options);
    const size_t peak = text.find("heap_tree=peak");
    ASSERT_NE(peak, std::string::npos);
    const std::string heap = "mem_heap_B=";
    const auto number_before = [&](size_t at) {
      return std::stoll(text.substr(text.rfind(heap, at) + heap.size()));
    };
    EXPECT_EQ(number_before(peak), truth.peak);
    EXPECT_EQ(number_before(text.size()), truth.left);
    int64_t before = 0;
    for (size_t at = text.find("\ntime="); at != std::string::npos; at = text.find("\ntime=", at)) {
      at += 6;
      EXPECT_LE(before, std::stoll(text.substr(at)));
      before = std::stoll(text.substr(at));
    }
  }
}

TEST(EventExport, ChromeTraceHasCountersThreadsAndBlocks) {
  for (const Choice& choice : choices()) {
    SCOPED_TRACE(choice.condition);
    const LogTruth truth(choice.condition);
    const json trace = json::parse(exported("chrome", choice.options));
    std::map<std::string, json> last;  // values of each counter
    int64_t allocated = 0, freed = 0, begun = 0, ended = 0, threads = 0;
    std::map<int64_t, double> open;  // blocks, by id
    for (const json& event : trace["traceEvents"]) {
      const std::string phase = event["ph"];
      if (phase == "C") last[event["name"]] = event["args"];
      if (phase == "C" && event["args"].contains("freed")) {
        allocated += event["args"]["allocated"].get<int64_t>();
        freed += event["args"]["freed"].get<int64_t>();
      }
      threads += phase == "X";
      if (phase == "b") {
        ++begun;
        open[event["id"]] = event["ts"];
      } else if (phase == "e") {
        ++ended;
        ASSERT_EQ(open.count(event["id"]), 1u);
        EXPECT_LE(open[event["id"]], event["ts"].get<double>());
        open.erase(event["id"]);
      }
    }
    EXPECT_EQ(last["live bytes"]["bytes"], truth.left);
    EXPECT_EQ(last["live blocks"]["blocks"], truth.allocations - truth.frees);
    EXPECT_EQ(allocated - freed, truth.left);
    int64_t sum = 0;
    for (const auto& [name, bytes] : last["live bytes by function"].items()) {
      sum += bytes.get<int64_t>();
    }
    EXPECT_EQ(sum, truth.left);
    EXPECT_GE(last["live bytes by function"].size(), 2u);
    EXPECT_EQ(begun, std::min<int64_t>(truth.allocations, 1000));
    EXPECT_GT(ended, 0);
    EXPECT_EQ(threads, numbers("select count(*) from events where kind = 'thread-end'").at(0));
  }
}

TEST(EventExport, ThePageHasTheCourseOfTheLog) {
  const std::string page = exported("html");
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const size_t from = page.find(begin) + begin.size();
  const json data = json::parse(page.substr(from, page.find("</script>", from) - from));
  EXPECT_EQ(data["remarks"], json::array()) << "nothing is missing";
  const LogTruth all("1");
  int64_t most = 0;
  for (const json& sample : data["samples"]) most = std::max(most, sample[1].get<int64_t>());
  EXPECT_EQ(most, all.peak);
  EXPECT_EQ(data["samples"].back()[1], all.left);
}

TEST(EventExport, IsCompressedWhereTheNameSaysSo) {
  TemporaryDirectory directory;
  const std::string file = directory / "x.json.gz";
  EXPECT_EQ(exported("chrome", {"-o", file}), "");
  EXPECT_EQ(shell("gzip -dc {}", file), exported("chrome"));
}

}  // namespace
}  // namespace mtrace::test
