// Timelines: the file, how it is recorded from a ledger, and what export draws of it.
#include "model/profile/timeline.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "process/run/regular_reports.h"
#include "tool_test.h"
#include "util/error.h"
#include "view/reports/reports.h"

namespace mtrace::test {
namespace {

using profile::Sample;

constexpr char kFile[] =
    "# timeline 1\n# program: /bin/app\n# pid: 3\n# started: 2026-11-20T20:15:00.000000Z\n"
    "# interval: 1000 ms\n# columns: milliseconds live blocks resident allocations\n"
    "10000\t700\t7\t9000\t20\n20000\t1000\t9\t8000\t30\n30000\t400\t4\t5000\t1\n# end\n";

// Peak 1,000 bytes at 20.5 seconds, 400 live at the end, at 31.1 seconds.
constexpr char kReport[] =
    "# memlog 2\n# program: /bin/app\n# pid: 3\n# seq: 1\n# trigger: exit\n"
    "# started: 2026-11-20T20:15:00.000000Z\n# taken: 2026-11-20T20:15:31.100000Z\n"
    "# delta: +400 bytes +4 blocks\n# live: 400 bytes 4 blocks\n"
    "# peak: 1000 bytes 2026-11-20T20:15:20.500000Z\n"
    "# lost: frames=0 stacks=0 blocks=0 inflight=0\n"
    "+400\tblocks=+4\tlive=400\tpeak=1000\tstack=0000000000000001\n\tkeeps\t(/bin/app+0x1)\n"
    "# rss: 4400 bytes\n# uptime: 31.100 seconds\n# end\n";

class Timelines : public testing::Test {
 protected:
  std::string with_files() {
    write_file(directory_ / "app-3-1.memlog", kReport);
    write_file(directory_ / "app-3.timeline", kFile);
    return directory_ / "app-3-1.memlog";
  }
  TemporaryDirectory directory_;
};

TEST_F(Timelines, AreReadAsTheyAreWritten) {
  with_files();
  const profile::Timeline timeline = profile::read_timeline(directory_ / "app-3.timeline");
  EXPECT_EQ(timeline.interval, 1000u);
  ASSERT_EQ(timeline.samples.size(), 3u);
  EXPECT_EQ(timeline.samples[1], (Sample{20000, 1000, 9, 8000, 30}));
  EXPECT_EQ(profile::write(timeline), kFile);
}

TEST_F(Timelines, DamageIsFound) {
  const std::string path = directory_ / "bad.timeline";
  const std::string text = kFile;
  for (const std::string& bad : {text.substr(0, text.size() - 6), "# memlog 2\n# end\n" + text,
                                 std::string(text).replace(text.find("20000"), 5, "10000"),
                                 std::string(text).replace(text.find("\t20\n"), 4, "\n"),
                                 std::string(text).replace(text.find("1000 ms"), 7, "1000 s")}) {
    write_file(path, bad);
    EXPECT_THROW(profile::read_timeline(path), util::FormatError) << bad;
  }
}

TEST(TimelineHalves, KeepEveryPeakAndAllCalls) {
  profile::Timeline timeline;
  timeline.interval = 10;
  timeline.samples = {{10, 5, 1, 900, 1},
                      {20, 9, 2, 100, 2},
                      {30, 7, 3, 300, 4},
                      {40, 1, 4, 300, 8},
                      {50, 6, 5, 200, 16}};
  timeline.halve();
  EXPECT_EQ(timeline.interval, 20u);
  EXPECT_EQ(timeline.samples,
            (std::vector<Sample>{{20, 9, 2, 900, 3}, {40, 7, 3, 300, 12}, {50, 6, 5, 200, 16}}));
}

// A program of the host tests, with a ledger.
Command sites(const std::string& directory) {
  Command command = shell_command("");
  command.argv = {program("attached"), "sites"};
  command.env["LD_PRELOAD"] = library();
  command.env["MTRACE_LEDGER"] = command.env["MTRACE_OUTPUT"] = directory;
  command.env["MTRACE_RESOLVER"] = "none";
  return command;
}

// Looks until the process has `count` samples more.
void look(process::TimelineRecorder& recorder, int count) {
  for (int i = 0; i < count; ++i) {
    recorder.look();
    ::usleep(11000);  // of an interval of 10 ms; a late look is as good
  }
}

TEST_F(Timelines, HaveWhatTheLedgerSays) {
  process::TimelineRecorder recorder(directory_.path(), directory_.path(),
                                     std::chrono::milliseconds(10));
  ::usleep(1000);  // the recorder takes the programs that are started after it
  Process program(sites(directory_.path()), "ready");
  program.say("ap", "told");
  look(recorder, 6);
  program.say("aaanp", "told");
  look(recorder, 6);
  program.wait();
  recorder.look();
  const profile::Timeline timeline =
      profile::read_timeline(directory_ / fmt::format("attached-{}.timeline", program.pid()));
  ASSERT_GE(timeline.samples.size(), 6u);
  EXPECT_EQ(timeline.pid, program.pid());
  const Sample& first = timeline.samples.front();
  const Sample& last = timeline.samples.back();
  // Three blocks of 321 bytes and one of 123.
  EXPECT_EQ(last.live - first.live, 3u * 321 + 123);
  EXPECT_EQ(last.blocks - first.blocks, 4u);
  uint64_t allocations = 0;
  for (const Sample& sample : timeline.samples) allocations += sample.allocations;
  // operator new calls malloc, and the program makes some more to tell what it holds.
  EXPECT_GE(allocations - first.allocations, 4u);
  EXPECT_LE(allocations - first.allocations, 20u);
  EXPECT_GT(last.resident, 1u << 20);
  // It is found beside its report.
  std::string found;
  profile::Header header;
  header.pid = program.pid();
  header.started = timeline.started;
  EXPECT_TRUE(reports::timeline_beside(directory_ / "any.memlog", header, &found));
  EXPECT_EQ(found, directory_ / fmt::format("attached-{}.timeline", program.pid()));
  header.started = "2026-11-20T20:15:00.000000Z";
  EXPECT_FALSE(reports::timeline_beside(directory_ / "any.memlog", header));
}

TEST_F(Timelines, MassifDrawsTheHeapAlone) {
  const Outcome result = memlog({"export", "-f", "massif", "--no-resolve", with_files()});
  EXPECT_EQ(result.status, 0) << result.err;
  std::string facts;
  for (size_t at = 0, end; (end = result.out.find('\n', at)) != std::string::npos; at = end + 1) {
    const std::string line = result.out.substr(at, end - at);
    if (line.starts_with("time=")) facts += "| " + line.substr(5);
    if (line.starts_with("mem_heap_")) facts += ' ' + line.substr(line.find('=') + 1);
  }
  EXPECT_EQ(facts, "| 0 0 0| 10000 700 0| 20000 1000 0| 20500 1000 0| 30000 400 0| 31100 400 0");
}

TEST_F(Timelines, ThePageHasThem) {
  const Outcome result = memlog({"export", "-f", "html", "--no-resolve", with_files()});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_HAS(result.out, R"("samples":[[10000,700,9000],[20000,1000,8000],[30000,400,5000]])");
}

}  // namespace
}  // namespace mtrace::test
