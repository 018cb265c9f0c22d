// --json of the commands that read reports: one shape, read by another's parser. What it says of
// the reports of tests/golden: transcripts/json.txt.
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
constexpr std::string_view kWithoutUnit =
    " version pid parent_pid seq line summed_reports reports states_needed level probability "
    "reports_earliest reports_latest places folded_frames stack_count failed_allocations "
    "unknown_frees ";

bool names_unit(const std::string& key) {
  for (const char* unit : {"bytes", "blocks", "ms", "_s", "seconds", "per_report"}) {
    if (key.ends_with(unit)) return true;
  }
  return key.starts_with("stacks_") || kWithoutUnit.find(' ' + key + ' ') != kWithoutUnit.npos;
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

class Json : public testing::Test {
 protected:
  json show(const std::string& text, std::vector<std::string> options = {}) {
    write_file(directory_ / "report.memlog", text);
    options.insert(options.begin(), {"show", "--json", "--no-resolve"});
    options.push_back(directory_ / "report.memlog");
    const Outcome result = memlog(options);
    EXPECT_EQ(result.status, 0) << result.err;
    const json answer = json::parse(result.out);
    EXPECT_EQ(answer["version"], 1);
    EXPECT_EQ(answer["reports"].size(), 1u);
    return answer["reports"][0];
  }
  TemporaryDirectory directory_;
};

TEST_F(Json, AnyBytesSurvive) {
  const std::string text =
      small_memlog({"f\"\\\\\\xff\\x1b<\u00e9>\ta\\xfe.c:3\t(/m\\x23\\x80#2+0xff)", "(0x12)"},
                   "# note: n\\xff\n# novel: v\\xff\n# novel: again\n");
  const json report = show(text);
  const json& frames = report["stacks"][0]["frames"];
  EXPECT_EQ(frames[0]["function"], "f\"\\\\\\xff\\x1b<\u00e9>");
  EXPECT_EQ(frames[0]["file"], "a\\xfe.c");
  EXPECT_EQ(frames[0]["line"], 3);
  EXPECT_EQ(frames[0]["module"], "/m\\x23\\x80#2");
  EXPECT_EQ(frames[1]["address"], "0x12");
  EXPECT_EQ(report["notes"], json({"n\\xff"}));
  EXPECT_EQ(report["further"]["novel"], json({"v\\xff", "again"}));
}

TEST_F(Json, ExtremesAreExact) {
  std::string text = small_memlog({"(0xffffffffffffffff)"});
  const auto replace = [&](const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
  };
  replace("delta: +64", "delta: -9223372036854775808");
  replace("\n+64", "\n-9223372036854775808");
  replace("\tstack=", "\tage=9223372036854775807\tstack=");
  const json report = show(text);
  EXPECT_EQ(report["delta"]["bytes"].get<int64_t>(), INT64_MIN);
  EXPECT_EQ(report["stacks"][0]["bytes"].get<int64_t>(), INT64_MIN);
  EXPECT_EQ(report["stacks"][0]["oldest_ms"].get<uint64_t>(), uint64_t{INT64_MAX});
  EXPECT_EQ(report["stacks"][0]["frames"][0]["address"], "0xffffffffffffffff");
}

}  // namespace
}  // namespace mtrace::test
