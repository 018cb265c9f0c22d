// memlog replay: the memory of a replay under glibc is held against that of the program's own run,
// which the program measures itself.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "host_test.h"

namespace mtrace::test {
namespace {

using nlohmann::json;

constexpr char kOneArena[] = "MALLOC_ARENA_MAX=1 glibc";

// KiB; `ns`: nanoseconds.
struct OwnRun {
  int64_t live_peak = 0;
  int64_t end = 0;
  int64_t trimmed = 0;
  int64_t ns = 0;
};

class ReplayTest : public HostTest {
 protected:
  // What the program says without the library.
  OwnRun own(const std::string& kind, const std::string& arenas = "") {
    Command command = plain({program("replay_heap"), kind});
    if (!arenas.empty()) command.env["MALLOC_ARENA_MAX"] = arenas;
    const Result result = expect_exit(run(command));
    const auto number = [&](const std::string& key) {
      const size_t at = result.out.find(key + ' ');
      return at == std::string::npos ? -1 : std::atoll(result.out.c_str() + at + key.size());
    };
    return {number("live peak"), number("end"), number("trimmed"), number("ns")};
  }
  std::vector<OwnRun> own_runs(const std::string& kind, const std::string& arenas = "") {
    std::vector<OwnRun> runs(8);
    for (OwnRun& run : runs) run = own(kind, arenas);
    return runs;
  }
  std::string recorded(const std::string& kind) {
    const Result result = expect_exit(run(named(
        {program("replay_heap"), kind}, {{"MTRACE_EVENTS", "1"}, {"MTRACE_EXIT_WAIT", "600"}})));
    return fmt::format("{}/replay_heap-{}.events", out(), result.pid);
  }
  json replayed(const std::string& log, const Words& options) {
    const Result result = expect_exit(memlog(joined({"replay", "--json", log}, options)));
    EXPECT_EQ(result.err, "");
    return json::parse(result.out);
  }
  // Stacks of threads and pages of libc are what may differ.
  static void expect_close(const json& bytes, int64_t own_kib, const char* what) {
    EXPECT_NEAR(bytes.get<double>() / 1024, static_cast<double>(own_kib),
                256 + 0.03 * static_cast<double>(own_kib))
        << what;
  }
  // Runs of a program with threads differ among themselves, most in what is left when trimmed: the
  // nearest one counts there.
  static void expect_same(const json& allocator, const std::vector<OwnRun>& runs) {
    SCOPED_TRACE(allocator.dump());
    expect_close(allocator["at_live_peak_bytes"], runs[0].live_peak, "at live");
    expect_close(allocator["at_end_bytes"], runs[0].end, "at end");
    const int64_t trimmed = allocator["trimmed_bytes"].get<int64_t>() / 1024;
    const auto nearest =
        std::min_element(runs.begin(), runs.end(), [&](const OwnRun& one, const OwnRun& other) {
          return std::abs(one.trimmed - trimmed) < std::abs(other.trimmed - trimmed);
        });
    expect_close(allocator["trimmed_bytes"], nearest->trimmed, "trimmed");
    EXPECT_GE(allocator["peak_bytes"], allocator["at_live_peak_bytes"]);
  }
};

TEST_F(ReplayTest, TakesTheMemoryThatTheProgramTook) {
  const json answer = replayed(recorded("one"), {"-a", "glibc", "--runs", "1"});
  EXPECT_EQ(answer["threads"], 1);
  EXPECT_GT(answer["operations"], 80'000);
  const OwnRun run = own("one");
  EXPECT_GT(run.end, 30'000);  // fragmented: a tenth of the blocks is live
  EXPECT_LT(answer["live_end_bytes"], 4'000'000);
  expect_same(answer["allocators"][0], {run});
}

// Two arenas, or one whose free memory the second thread uses.
TEST_F(ReplayTest, PerformsTheThreadsOfTheProgram) {
  const json answer =
      replayed(recorded("threads"), {"-a", "glibc", "-a", kOneArena, "--runs", "1"});
  EXPECT_GE(answer["threads"], 2);
  expect_same(answer["allocators"][0], own_runs("threads"));
  expect_same(answer["allocators"][1], own_runs("threads", "1"));
  EXPECT_GT(answer["allocators"][0]["peak_bytes"].get<double>(),
            1.7 * answer["allocators"][1]["peak_bytes"].get<double>());
}

TEST_F(ReplayTest, UsesEachAllocator) {
  const std::string log = recorded("one");
  const json answer =
      replayed(log, {"-a", "glibc", "-a", "jemalloc", "-a", "mimalloc", "-a", "tcmalloc"});
  const Words libraries = {"libc.so.6", "libjemalloc.so.2", "libmimalloc.so.2",
                           "libtcmalloc_minimal.so.4"};
  ASSERT_EQ(answer["allocators"].size(), libraries.size());
  for (size_t i = 0; i < libraries.size(); ++i) {
    const json& one = answer["allocators"][i];
    SCOPED_TRACE(one.dump());
    EXPECT_NE(
        one["library"].get<std::string>().find(libraries[i].substr(0, libraries[i].find(".so"))),
        std::string::npos);
    EXPECT_EQ(one["times_ns"].size(), 3u);
    EXPECT_EQ(one["time_ns"], one["times_ns"][1]);
    EXPECT_FALSE(one.contains("failed"));
    // All blocks of the peak are written to, and what lives at the end stays.
    EXPECT_GE(one["at_live_peak_bytes"], answer["live_peak_bytes"]);
    EXPECT_GE(one["trimmed_bytes"], answer["live_end_bytes"]);
    EXPECT_LT(one["fragmentation"], 2);
  }
}

// Of each function one block, and none is freed but by realloc(p, 0).
TEST_F(ReplayTest, PerformsEachFunction) {
  const json answer = replayed(recorded("families"), {"-a", "glibc", "--runs", "1"});
  const uint64_t blocks = 100 + 200 + 300 + 5000 + 7000;
  EXPECT_GE(answer["live_end_bytes"], blocks);
  EXPECT_LT(answer["live_end_bytes"], blocks + 20'000);  // of libc
  EXPECT_GE(answer["live_peak_bytes"], answer["live_end_bytes"]);
}

TEST_F(ReplayTest, NamesWhatIsWrong) {
  const Result result = memlog({"replay", "-a", "/no/such/libbest.so", recorded("families")});
  EXPECT_EQ(result.err, "memlog: /no/such/libbest.so: /no/such/libbest.so cannot be loaded\n");
}

}  // namespace
}  // namespace mtrace::test
