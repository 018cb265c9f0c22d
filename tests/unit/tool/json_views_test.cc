// --json of the commands that read reports: one shape, read by another's parser, with the numbers
// that are known of the reports of tests/golden.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tool_test.h"

namespace mtrace::test {
namespace {

using nlohmann::json;

std::string report(const std::string& name) {
  return source_dir() + "/tests/golden/" + name + ".memlog";
}

std::vector<std::string> rounds() {
  std::vector<std::string> files;
  for (int i = 1; i <= 9; ++i) files.push_back(report("app-5000-" + std::to_string(i)));
  return files;
}

json answer(std::vector<std::string> words, const std::vector<std::string>& files, int status = 0) {
  words.emplace_back("--json");
  words.insert(words.end(), files.begin(), files.end());
  const Outcome result = memlog(words);
  EXPECT_EQ(result.status, status) << result.err;
  EXPECT_EQ(result.err, "");
  const json parsed = json::parse(result.out);
  EXPECT_EQ(parsed["version"], 1);
  EXPECT_EQ(parsed["view"], words[0]);
  return parsed;
}

// What the commands answer about the reports.
std::vector<json> answers() {
  return {answer({"show"}, {report("app-4600-1"), report("app-4600-2")}),
          answer({"show", "--sum"}, {report("app-4600-1"), report("app-4600-2")}),
          answer({"show"}, {report("app-4960-2")}),
          answer({"tree"}, {report("app-4711-2")}),
          answer({"tree", "--sum"}, {report("app-4600-1"), report("app-4600-2")}),
          answer({"diff"}, {report("app-4711-1"), report("app-4711-2")}),
          answer({"leaks", "--limit", "1M"}, rounds()),
          answer({"check", "--max-live", "0"}, {report("app-4711-1")}, 1)};
}

// Counts and places, whose names say what they are.
const std::set<std::string> kWithoutUnit = {
    "version",
    "pid",
    "parent_pid",
    "seq",
    "line",
    "summed_reports",
    "reports",
    "states_needed",
    "level",
    "probability",
    "reports_earliest",
    "reports_latest",
    "places",
    "folded_frames",
    "stack_count",
    "failed_allocations",
    "unknown_frees",
};

bool names_unit(const std::string& key) {
  for (const char* unit : {"bytes", "blocks", "ms", "_s", "seconds", "per_report"}) {
    if (key.ends_with(unit)) return true;
  }
  return key.starts_with("stacks_") || kWithoutUnit.contains(key);
}

// Tables of counts by names from the report.
const std::set<std::string> kCounts = {"lost", "calls", "misuse", "report_counts", "left_out"};

void expect_units(const json& value, const std::string& key) {
  if (value.is_object()) {
    if (kCounts.contains(key)) return;
    for (const auto& [name, part] : value.items()) expect_units(part, name);
  } else if (value.is_array()) {
    for (const json& part : value) expect_units(part, key);
  } else if (value.is_number()) {
    EXPECT_TRUE(names_unit(key)) << key << ": " << value;
  }
}

// Collects the objects with frames, wherever they are.
void find_stacks(const json& value, std::vector<json>& found) {
  if (value.contains("frames") && value["frames"].is_array()) found.push_back(value);
  if (!value.is_structured()) return;
  for (const json& part : value) find_stacks(part, found);
}

TEST(JsonViews, EveryNumberNamesItsUnit) {
  for (const json& one : answers()) expect_units(one, "");
}

TEST(JsonViews, AStackIsTheSameObjectEverywhere) {
  size_t count = 0;
  for (const json& one : answers()) {
    std::vector<json> stacks;
    find_stacks(one, stacks);
    EXPECT_TRUE(!stacks.empty() || one["view"] == "tree") << one["view"];
    for (const json& stack : stacks) {
      ++count;
      if (stack.value("kind", "") == "heap") {
        EXPECT_EQ(stack["stack"].get<std::string>().size(), 16u) << stack;
      }
      EXPECT_TRUE(stack["bytes"].is_number_integer()) << stack;
      for (const json& frame : stack["frames"]) {
        EXPECT_TRUE(frame.is_object());
        if (frame.contains("line")) {
          EXPECT_TRUE(frame["file"].is_string() && frame["line"].is_number_unsigned()) << frame;
          EXPECT_LACKS(frame["file"].get<std::string>(), ":");
        }
        EXPECT_EQ(frame.contains("module") + frame.contains("address") + frame.contains("inlined"),
                  1)
            << frame;
      }
    }
  }
  EXPECT_GT(count, 20u);
}

// What each stack of report 2 holds less what it held at report 1, from the reports' own texts.
TEST(JsonViews, DiffHasBothSides) {
  const json diff = answer({"diff"}, {report("app-4711-1"), report("app-4711-2")});
  EXPECT_EQ(diff["compares"], "live");
  EXPECT_EQ(diff["relation"], "the same process");
  EXPECT_EQ(diff["a"]["bytes"], 131731);
  EXPECT_EQ(diff["b"]["bytes"], 196716);
  EXPECT_EQ(diff["bytes"], 64985);
  EXPECT_EQ(diff["b"]["processes"][0]["label"], "after-warmup");
  const json& first = diff["stacks"][0];
  EXPECT_EQ(first["stack"], "2a31fdaa579e3f25");
  EXPECT_EQ(first["before_bytes"], 126720);
  EXPECT_EQ(first["after_bytes"], 190080);
  EXPECT_EQ(first["bytes"], 63360);
  int64_t sum = 0;
  for (const json& stack : diff["stacks"]) {
    if (stack["kind"] == "heap") sum += stack["bytes"].get<int64_t>();
  }
  EXPECT_EQ(sum, 64985);
}

// The leak of 1,000 bytes a round that the reports were made with.
TEST(JsonViews, LeaksHaveTheSeries) {
  const json leaks = answer({"leaks", "--limit", "1M"}, rounds());
  const json& process = leaks["processes"][0];
  EXPECT_EQ(process["pid"], 5000);
  EXPECT_EQ(process["states"].size(), 7u);
  EXPECT_EQ(process["states"][0]["label"], "round-1");
  EXPECT_EQ(process["stacks_growing"], 1);
  const json& leak = process["stacks"][0];
  EXPECT_EQ(leak["course"], "grows");
  EXPECT_EQ(leak["frames"][0]["function"], "leaky");
  EXPECT_EQ(leak["frames"][0]["line"], 3);
  EXPECT_EQ(leak["states_bytes"], json({1000, 2000, 3000, 4100, 5000, 6000, 7000}));
  EXPECT_EQ(leak["growth_bytes_per_report"], 1000);
  EXPECT_EQ(process["forecast"]["limit_bytes"], 1048576);
  EXPECT_EQ(process["forecast"]["reached"], false);
  // (1048576 - 68612) / 1000 a report.
  EXPECT_EQ(process["forecast"]["reports"], 980);
  EXPECT_EQ(process["stacks"].size(), 5u);
  EXPECT_EQ(answer({"leaks", "-n", "1"}, rounds())["processes"][0]["stacks"].size(), 2u);
}

TEST(JsonViews, LeaksWithTooFewStatesSaySo) {
  const json few = answer({"leaks"}, {report("app-5000-2"), report("app-5000-3")});
  EXPECT_EQ(few["processes"][0]["states_needed"], 5);
  EXPECT_EQ(few["processes"][0]["states"].size(), 2u);
  EXPECT_EQ(few["processes"][0]["stacks"], json::array());
}

// The children of each node add up to no more than the node; the root is the report's delta.
TEST(JsonViews, TreesAddUp) {
  const json tree = answer({"tree", "--threshold", "0"}, {report("app-4711-2")});
  const json& root = tree["reports"][0]["trees"][0];
  EXPECT_EQ(root["kind"], "heap");
  EXPECT_EQ(root["bytes"], tree["reports"][0]["delta"]["bytes"]);
  int64_t sum = 0;
  for (const json& child : root["children"]) sum += child["bytes"].get<int64_t>();
  EXPECT_EQ(sum, root["bytes"]);
  const json all = answer({"tree", "--threshold", "0", "--full"}, {report("app-4711-2")});
  const json& first = all["reports"][0]["trees"][0]["children"][0];
  EXPECT_EQ(first["function"], "g_realloc");
  EXPECT_EQ(first["children"][0]["file"], "gslist.c");
}

TEST(JsonViews, CheckTellsItsVerdicts) {
  const json failed = answer({"check", "--max-live", "0", "-n", "1"}, {report("app-4711-1")}, 1);
  EXPECT_EQ(failed["within_limits"], false);
  EXPECT_EQ(failed["checks"][0]["what"], "live");
  EXPECT_EQ(failed["checks"][0]["bytes"], 131731);
  EXPECT_EQ(failed["checks"][0]["limit_bytes"], 0);
  EXPECT_EQ(failed["checks"][0]["stacks"].size(), 1u);
  const json good = answer({"check", "--max-live", "1M"}, {report("app-4711-1")});
  EXPECT_EQ(good["within_limits"], true);
}

TEST(JsonViews, ErrorsGoToTheErrorStream) {
  for (const char* command : {"show", "tree", "leaks"}) {
    const Outcome result = memlog({command, "--json", report("damaged")});
    EXPECT_EQ(result.status, 2) << command;
    EXPECT_EQ(result.out, "") << command;
    EXPECT_NE(result.err, "") << command;
  }
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"show", "--json", "--no-header"},
                                             {"tree", "--json", "--no-header"},
                                             {"diff", "--json", "--oneline", "a", "b"},
                                             {"leaks", "--json", "--no-header"},
                                             {"top", "--json", "1"}}) {
    const Outcome result = memlog(words);
    EXPECT_EQ(result.status, 2) << words[0];
    EXPECT_EQ(result.out, "") << words[0];
  }
}

}  // namespace
}  // namespace mtrace::test
