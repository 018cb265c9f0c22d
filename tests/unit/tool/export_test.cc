// memlog export: each format opened by the tool that it is for, which must find the memlog's bytes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "model/profile/reader.h"
#include "tool_test.h"
#include "util/text.h"
#include "view/export/stacks.h"

namespace mtrace::test {
namespace {

using nlohmann::json;

// The first report of a real program, in which nothing can have shrunk.
class Export : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new TemporaryDirectory;
    shell(
        "cd {0} && {1}/memlog run -q -o . --depth 20 /bin/bash -c 'x=1' && "
        "{1}/memlog resolve bash-*.memlog",
        directory_->path(), build_dir());
    for (const auto& item : std::filesystem::directory_iterator(directory_->path())) {
      const std::string name = item.path().filename();
      if (name.starts_with("bash-") && name.ends_with("-1.memlog")) report_ = item.path();
    }
    ASSERT_FALSE(report_.empty());
    memlog_ = profile::read_path(report_);
  }
  static void TearDownTestSuite() {
    delete directory_;
    directory_ = nullptr;
  }

  // Path of the report in this format.
  static std::string exported(const std::string& format, const std::string& by = "bytes") {
    const std::string file = *directory_ / ("out." + format + "." + by);
    const Outcome result =
        memlog({"export", "-f", format, "--by", by, "-o", file, "--no-resolve", report_});
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return file;
  }
  static int64_t bytes() { return memlog_.header.delta.bytes; }
  static size_t stacks() { return memlog_.entries.size(); }

  static TemporaryDirectory* directory_;
  static std::string report_;
  static profile::Memlog memlog_;
};

TemporaryDirectory* Export::directory_ = nullptr;
std::string Export::report_;
profile::Memlog Export::memlog_;

TEST_F(Export, TheReportIsWorthIt) {
  EXPECT_GT(stacks(), 20u);
  EXPECT_GT(bytes(), 1000);
  for (const profile::Entry& entry : memlog_.entries) EXPECT_GE(entry.bytes, 0);
}

TEST_F(Export, FoldedInAwk) {
  EXPECT_EQ(shell("awk '{{ sum += $NF }} END {{ print sum }}' {}", exported("folded")),
            std::to_string(bytes()) + "\n");
}

// What Chromium makes of one: browser_test.cc.
TEST_F(Export, FlameGraphHasTheBytes) {
  EXPECT_EQ(shell("grep -o 'data-depth=\"0\" data-grew=\"[0-9]*\" data-shrank=\"[0-9]*\"' {}",
                  exported("flamegraph")),
            fmt::format("data-depth=\"0\" data-grew=\"{}\" data-shrank=\"0\"\n", bytes()));
}

TEST_F(Export, CallgrindInCallgrindAnnotate) {
  const std::string out = shell("callgrind_annotate --threshold=100 --show-percs=no {} | tr -d ,",
                                exported("callgrind"));
  EXPECT_HAS(out, std::to_string(bytes()) + "  PROGRAM TOTALS");
  const std::string inclusive =
      shell("callgrind_annotate --inclusive=yes --threshold=100 --show-percs=no {} | tr -d ,",
            exported("callgrind"));
  EXPECT_HAS(inclusive, "main [");
}

// gprof2dot reads version and creator from the first two lines only, then keys that it knows, then
// names, calls and lines with costs, and nothing else. It adds up the costs that follow no call.
TEST_F(Export, CallgrindByTheRulesOfGprof2dot) {
  std::istringstream lines(read_file(exported("callgrind")));
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "version: 1");
  std::getline(lines, line);
  EXPECT_EQ(line, "creator: memlog");
  const std::regex key("(cmd|pid|thread|part|desc|events|positions|summary|totals): .*");
  while (std::getline(lines, line) && !line.empty()) EXPECT_TRUE(std::regex_match(line, key));
  const std::regex name("c?(ob|fl|fi|fn)=.+");
  const std::regex call("calls=[0-9]+ [0-9]+");
  const std::regex cost("[0-9]+ ([0-9]+)");
  int64_t sum = 0;
  bool after_call = false;
  for (std::smatch found; std::getline(lines, line);) {
    if (std::regex_match(line, found, cost)) {
      if (!after_call) sum += std::stoll(found[1]);
    } else {
      EXPECT_TRUE(line.empty() || std::regex_match(line, name) || std::regex_match(line, call))
          << line;
    }
    after_call = std::regex_match(line, call);
  }
  EXPECT_EQ(sum, bytes());
}

TEST_F(Export, MassifInMsPrint) {
  const std::string out = shell("ms_print {} | tr -d ,", exported("massif"));
  EXPECT_HAS(out, "100.00% (" + std::to_string(bytes()) + "B) (heap allocation functions)");
}

// Two stacks go through one call: it was made for the allocations of both.
TEST(ExportCalls, CallgrindCountsAllocations) {
  TemporaryDirectory directory;
  const std::string frames = "\tmake\ta.c:3\t(/bin/app+0x30)\n\tmain\ta.c:9\t(/bin/app+0x90)\n";
  write_file(directory / "app-3-1.memlog",
             "# memlog 2\n# program: /bin/app\n# pid: 3\n# seq: 1\n# trigger: exit\n"
             "# started: 2026-11-20T20:15:00.000000Z\n# taken: 2026-11-20T20:15:31.123456Z\n"
             "# delta: +300 bytes +3 blocks\n# live: 300 bytes 3 blocks\n"
             "# lost: frames=0 stacks=0 blocks=0 inflight=0\n"
             "+200\tblocks=+2\tlive=200\tallocs=5\tallocated=500\tfrees=3\tfreed=300\t"
             "stack=0000000000000001\n\tone\tb.c:1\t(/bin/app+0x10)\n" +
                 frames +
                 "+100\tblocks=+1\tlive=100\tallocs=7\tallocated=700\tfrees=6\tfreed=600\t"
                 "stack=0000000000000002\n\ttwo\tb.c:2\t(/bin/app+0x20)\n" +
                 frames + "# end\n");
  const std::string out =
      memlog({"export", "-f", "callgrind", "--no-resolve", directory / "app-3-1.memlog"}).out;
  EXPECT_HAS(out, "cfn=make\ncalls=12 0\n9 300\n");
  EXPECT_HAS(out, "cfn=one\ncalls=5 0\n3 200\n");
  EXPECT_HAS(out, "cfn=two\ncalls=7 0\n3 100\n");
}

TEST_F(Export, DotInGraphviz) {
  const std::string out = shell("dot -Tsvg {}", exported("dot"));
  EXPECT_HAS(out, "</svg>");
  EXPECT_HAS(out, fmt::format(": {} bytes</text>", bytes()));
}

TEST_F(Export, CsvInSqlite) {
  EXPECT_EQ(shell("sqlite3 :memory: '.import --csv \"'{}'\" m' 'select count(*), sum(bytes), "
                  "sum(live) from m where kind = \"\"'",
                  exported("csv")),
            fmt::format("{}|{}|{}\n", stacks(), bytes(), memlog_.header.live.bytes));
}

TEST_F(Export, JsonLinesInJq) {
  EXPECT_EQ(shell("jq -s 'length, (map(.bytes) | add)' {}", exported("jsonl")),
            fmt::format("{}\n{}\n", stacks(), bytes()));
}

// The fields that gprof2dot's JSON reader asks for, and what it sums up.
TEST_F(Export, Gprof2dotHasItsFields) {
  const json out = json::parse(read_file(exported("gprof2dot")));
  EXPECT_EQ(out["version"], 0);
  EXPECT_EQ(out["costs"][0]["unit"], "bytes");
  int64_t sum = 0;
  for (const json& event : out["events"]) {
    sum += event["cost"][0].get<int64_t>();
    ASSERT_FALSE(event["callchain"].empty());
    for (const json& function : event["callchain"]) {
      const json& one = out["functions"].at(function.get<size_t>());
      EXPECT_TRUE(one["name"].is_string() && one["module"].is_string());
    }
  }
  EXPECT_EQ(sum, bytes());
}

TEST_F(Export, SpeedscopeIsAsItsSchemaSays) {
  const json out = json::parse(read_file(exported("speedscope")));
  EXPECT_EQ(out["$schema"], "https://www.speedscope.app/file-format-schema.json");
  const json& profile = out["profiles"][0];
  EXPECT_EQ(profile["type"], "sampled");
  EXPECT_EQ(profile["unit"], "bytes");
  EXPECT_EQ(profile["samples"].size(), profile["weights"].size());
  int64_t sum = 0;
  for (const json& weight : profile["weights"]) sum += weight.get<int64_t>();
  EXPECT_EQ(sum, bytes());
  EXPECT_EQ(profile["endValue"].get<int64_t>() - profile["startValue"].get<int64_t>(), sum);
  for (const json& sample : profile["samples"]) {
    for (const json& frame : sample) {
      EXPECT_FALSE(out["shared"]["frames"].at(frame.get<size_t>())["name"].empty());
    }
  }
}

// The npm package reads it with its own definition of the messages.
TEST_F(Export, PprofInPprofFormat) {
  const std::string modules = build_dir() + "/npm/node_modules";
  ASSERT_TRUE(std::filesystem::exists(modules + "/pprof-format"))
      << "skipped: make deps could not get pprof-format from the npm registry";
  write_file(*directory_ / "read.cjs", R"(
const { Profile } = require('pprof-format');
const file = require('fs').readFileSync(process.argv[2]);
const profile = Profile.decode(require('zlib').gunzipSync(file));
const text = (i) => profile.stringTable.strings[Number(i)];
const types = profile.sampleType.map((t) => text(t.type) + '/' + text(t.unit));
const sum = (i) => profile.sample.reduce((s, x) => s + Number(x.value[i]), 0);
const functions = new Map(profile.function.map((f) => [Number(f.id), text(f.name)]));
const locations = new Map(profile.location.map((l) => [Number(l.id), l]));
const inner = new Set(), inlined = profile.location.filter((l) => l.line.length > 1).length;
for (const s of profile.sample)
  for (const id of s.locationId)
    for (const line of locations.get(Number(id)).line) inner.add(functions.get(Number(line.functionId)));
console.log(types.join(' '));
console.log(profile.sample.length, sum(2), sum(3), inner.has('main'), inlined > 0);
console.log(profile.mapping.map((m) => text(m.filename) + ' ' + text(m.buildId)).sort().join('\n'));
)");
  int64_t blocks = 0;
  std::vector<std::string> modules_expected;
  for (const profile::Entry& entry : memlog_.entries) {
    if (entry.bytes > 0) blocks += entry.blocks;
  }
  size_t samples = 0;
  bool inlined = false;
  for (const profile::Entry& entry : memlog_.entries) {
    samples += entry.bytes > 0 || entry.activity.allocations != 0;
    for (const profile::Frame& one : entry.frames) inlined |= one.place == profile::Place::kInlined;
  }
  for (const profile::Module& module : memlog_.modules) {
    modules_expected.push_back(module.path + ' ' + util::hex_bytes(module.build_id));
  }
  std::sort(modules_expected.begin(), modules_expected.end());
  EXPECT_EQ(shell("cd {} && NODE_PATH={} node read.cjs {}", directory_->path(), modules,
                  exported("pprof")),
            fmt::format("alloc_objects/count alloc_space/bytes inuse_objects/count "
                        "inuse_space/bytes\n{} {} {} true {}\n{}\n",
                        samples, blocks, bytes(), inlined, fmt::join(modules_expected, "\n")));
}

TEST_F(Export, OtherColumnsAddUpToTheHeader) {
  EXPECT_EQ(shell("awk '{{ sum += $NF }} END {{ print sum }}' {}", exported("folded", "live")),
            std::to_string(memlog_.header.live.bytes) + "\n");
  EXPECT_EQ(shell("awk '{{ sum += $NF }} END {{ print sum }}' {}", exported("folded", "peak")),
            std::to_string(memlog_.header.peak->bytes) + "\n");
  EXPECT_EQ(shell("awk '{{ sum += $NF }} END {{ print sum }}' {}", exported("folded", "blocks")),
            std::to_string(memlog_.header.delta.blocks) + "\n");
}

}  // namespace
}  // namespace mtrace::test
