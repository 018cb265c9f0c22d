// memlog show --json, parsed by another's parser and compared with the lines of the memlog.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tool_test.h"
#include "util/text.h"

namespace mtrace::test {
namespace {

using nlohmann::json;

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

// The keys of JSON, which name units, by those of the memlog.
const std::map<std::string, std::string> kKeys = {
    {"blocks", "blocks"},
    {"live", "live_bytes"},
    {"allocs", "allocated_blocks"},
    {"allocated", "allocated_bytes"},
    {"frees", "freed_blocks"},
    {"freed", "freed_bytes"},
    {"temporary", "temporary_blocks"},
    {"short-lived", "short_lived_blocks"},
    {"lifetime-min", "lifetime_min_ms"},
    {"lifetime-mean", "lifetime_mean_ms"},
    {"lifetime-max", "lifetime_max_ms"},
    {"age", "oldest_ms"},
    {"slack", "slack_bytes"},
    {"peak", "peak_bytes"},
};

// Each field of each entry and each frame, from the text itself.
TEST_F(Json, HoldsEveryFieldOfTheFile) {
  for (const char* name : {"app-4600-1.memlog", "app-4600-2.memlog", "app-4711-1.memlog"}) {
    const std::string text = read_file(golden(name));
    const json report = show(text);
    auto entry = report["stacks"].begin();
    size_t frame = 0;
    bool any = false;
    for (const std::string_view line : util::split(text, '\n')) {
      if (line.starts_with('\t')) {
        if (line == "\t...") {
          EXPECT_TRUE((*entry)["cut"]);
          continue;
        }
        const auto fields = util::split(line.substr(1), '\t');
        const json& is = (*entry)["frames"].at(frame++);
        EXPECT_EQ(is.value("function", ""), fields.size() > 1 ? fields[0] : "");
        std::string source = is.value("file", "");
        if (is.contains("line")) source += ":" + std::to_string(is["line"].get<uint64_t>());
        EXPECT_EQ(source, fields.size() > 2 ? fields[1] : "");
        std::string place = "(inlined)";
        if (is.contains("module")) {
          place = "(" + is.value("module", "") + "+" + is.value("offset", "") + ")";
        } else if (!is.contains("inlined")) {
          place = "(" + is.value("address", "") + ")";
        }
        EXPECT_EQ(place, fields.back());
      } else if (!line.empty() && line[0] != '#') {
        if (any) ++entry;
        any = true;
        frame = 0;
        const auto fields = util::split(line, '\t');
        const bool kind = fields[0].starts_with('@');
        EXPECT_EQ(entry->value("kind", ""), kind ? fields[0].substr(1) : "heap");
        EXPECT_EQ((*entry)["bytes"], std::stoll(std::string(fields[kind])));
        for (size_t i = kind + 1u; i < fields.size(); ++i) {
          const size_t equals = fields[i].find('=');
          const std::string key(fields[i].substr(0, equals));
          const std::string value(fields[i].substr(equals + 1));
          if (key == "stack") {
            EXPECT_EQ((*entry)[key], value);
          } else if (key == "node") {
            EXPECT_EQ((*entry)["further"][key], value);
          } else {
            const json& number = (*entry)[kKeys.at(key)];
            EXPECT_TRUE(number.is_number_integer()) << line;
            EXPECT_EQ(number, std::stoll(value)) << line;
          }
        }
      }
    }
    EXPECT_EQ(entry + 1, report["stacks"].end());
  }
}

TEST_F(Json, HoldsTheHeader) {
  const json report = show(read_file(golden("app-4600-2.memlog")));
  EXPECT_EQ(report["pid"], 4600);
  EXPECT_EQ(report["delta"]["bytes"], -123656);
  EXPECT_EQ(report["peak"]["bytes"], 112000000);
  EXPECT_EQ(report["peak"]["time"], "2026-11-20T23:12:40.000000Z");
  EXPECT_EQ(report["peak_error_bytes"], 4096);
  EXPECT_EQ(report["recording"], "stopped");
  EXPECT_EQ(report["calls"]["new[]"], 12);
  EXPECT_EQ(report["failed_allocations"], 3);
  EXPECT_EQ(report["unknown_frees"], 1);
  EXPECT_EQ(report["misuse"]["pop-without-push"], 2);
  EXPECT_EQ(report["report_counts"]["failed"], 1);
  EXPECT_EQ(report["rss_max_bytes"], 118000000);
  EXPECT_EQ(report["virtual_bytes"], 20971520);
  EXPECT_DOUBLE_EQ(report["resolution_ms"], 1.024);
  EXPECT_DOUBLE_EQ(report["uptime_s"], 15211.5);
  EXPECT_EQ(report["modules"][0]["build_id"], "aa01");
  EXPECT_EQ(show(read_file(golden("app-4600-1.memlog")))["kinds"]["mmap"]["bytes"], 1048576);
}

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

TEST_F(Json, HonoursOrderNumberAndDepth) {
  const std::string text = read_file(golden("app-4600-2.memlog"));
  const auto stacks = [](const json& report) {
    std::vector<std::string> ids;
    for (const json& entry : report["stacks"]) ids.push_back(entry["stack"]);
    return ids;
  };
  using Ids = std::vector<std::string>;
  EXPECT_EQ(stacks(show(text, {"--by", "peak"})),
            (Ids{"c39ef499fb80b593", "b6614cc729fbbf35", "a2bba8d0e469447f"}));
  EXPECT_EQ(stacks(show(text, {"--by", "age", "-n", "1"})), Ids{"a2bba8d0e469447f"});
  EXPECT_EQ(stacks(show(text)).size(), 4u);
  const json merged = show(text, {"--depth", "1"});
  EXPECT_EQ(merged["stacks"][0]["allocated_blocks"], 2004);
  EXPECT_EQ(merged["stacks"][0]["frames"].size(), 1u);
}

TEST_F(Json, SeveralReportsAreAListAndASumIsOne) {
  const std::string good = directory_ / "a.memlog";
  write_file(good, small_memlog({"(0x1)"}));
  write_file(directory_ / "b.memlog", small_memlog({"(0x2)"}, "", 2));
  write_file(directory_ / "bad.memlog", "hello\n");
  Outcome result =
      memlog({"show", "--json", good, directory_ / "bad.memlog", directory_ / "b.memlog"});
  EXPECT_EQ(result.status, 2);
  const json both = json::parse(result.out);
  ASSERT_EQ(both["reports"].size(), 2u);
  EXPECT_EQ(both["reports"][0]["file"], good);
  EXPECT_EQ(both["reports"][1]["seq"], 2);
  result = memlog({"show", "--json", directory_ / "bad.memlog", directory_ / "gone"});
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.status, 2);
  result = memlog({"show", "--json", "--sum", good, directory_ / "b.memlog"});
  const json sum = json::parse(result.out);
  EXPECT_EQ(sum["processes"].size(), 1u);
  EXPECT_EQ(sum["processes"][0]["sum"]["bytes"], 128);
  EXPECT_EQ(sum["stacks"].size(), 2u);
}

}  // namespace
}  // namespace mtrace::test
