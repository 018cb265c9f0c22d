// memlog leaks on real programs, with a real leak, with a planted one, and with none.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <tuple>
#include <vector>

#include "model/profile/reader.h"
#include "tool_test.h"
#include "view/analyze/series.h"

namespace mtrace {
namespace {

// Rounds of work in an interpreter, with a cache that fills and lists that come and go; a report
// after each. "real": glibc keeps each value that setenv() has ever set.
constexpr char kRounds[] = R"(
import json, os, random, signal, sys
random.seed(5)
kept, cache = [], {}
for round in range(14):
    swinging = [bytes(random.randrange(20000)) for _ in range(3)]
    for i in range(100):
        text = json.dumps({"numbers": list(range(i % 40)), "text": "x" * i})
        cache[hash((i, min(round, 4)))] = json.loads(text)
    if sys.argv[1] == "real":
        os.environ["ROUND"] = "%04d" % round * 750
    if sys.argv[1] == "planted":
        kept.append(bytearray(10000))
    os.kill(os.getpid(), signal.SIGUSR1)
)";

std::string leaks_of(const std::string& kind, const std::string& frames) {
  test::TemporaryDirectory directory;
  test::write_file(directory / "rounds.py", kRounds);
  test::shell(
      "cd {} && PYTHONMALLOC=malloc PYTHONHASHSEED=1 MTRACE_RESOLVER=none "
      "{}/memlog run -q --depth 6 -o . /usr/bin/python3 rounds.py {}",
      directory.path(), test::build_dir(), kind);
  const test::Outcome result = test::memlog({"leaks", "--frames", frames, directory.path()});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_HAS(result.out, ": 15 reports, 13 of them comparable, ");
  return result.out;
}

TEST(Leaks, NoneInAProgramWithout) {
  const std::string out = leaks_of("none", "1..");
  EXPECT_HAS(out, "\nno stack grows\n");
}

TEST(Leaks, APlantedOneToTheByte) {
  const std::string out = leaks_of("planted", "1..");
  // The bytes, which end with a zero, and the object around them.
  EXPECT_HAS(out, "\n+10001 bytes a report  ");
  EXPECT_HAS(out, "\n2 stacks grow: ");
}

// The interpreter calls setenv() in more than one way, so only the innermost frame is looked at.
TEST(Leaks, ARealOneInSetenv) {
  const std::string out = leaks_of("real", "1");
  // "ROUND=", 3,000 characters and a zero; and the node of the tree that remembers them.
  EXPECT_HAS(out, "\n+3007 bytes a report  ");
  EXPECT_HAS(out, "\n    __add_to_environ  setenv.c:");
  EXPECT_HAS(out, "\n    __tsearch  tsearch.c:");
  EXPECT_HAS(out, "\n2 stacks grow: ");
}

// A report that is not there loses none of the numbers, since each says what its stacks hold.
TEST(Series, AGapKeepsTheNumbersRight) {
  const std::string golden = test::source_dir() + "/tests/golden/app-5000-";
  analyze::Series series({});
  for (const int seq : {2, 3, 5, 8}) {
    series.add(profile::read_path(fmt::format("{}{}.memlog", golden, seq)), true);
  }
  // shrink changed in reports 4 and 5; before, it held what 4 says less what it changed by.
  const std::map<std::string, std::vector<int64_t>> expected = {
      {"leaky", {1000, 2000, 4100, 7000}},
      {"swing", {900, 200, 150, 700}},
      {"shrink", {9000, 8000, 6000, 3000}}};
  for (size_t row = 0; row < series.table().rows().size(); ++row) {
    const auto known = expected.find(series.table().rows()[row].frames[0].function);
    if (known == expected.end()) continue;
    EXPECT_EQ(series.values(row), known->second) << known->first;
  }
}

// A report has an entry for each function that a stack calls, and only those that did something.
TEST(Series, CallsOfOneStackAddUp) {
  analyze::Series series({});
  const auto report = [&](int64_t seq,
                          std::vector<std::tuple<const char*, int64_t, int64_t>> entries) {
    profile::Memlog memlog;
    memlog.header.seq = seq;
    for (const auto& [call, bytes, live] : entries) {
      profile::Entry entry;
      entry.call = profile::Name(call);
      entry.bytes = bytes;
      entry.live = static_cast<uint64_t>(live);
      entry.stack = 1;
      memlog.entries.push_back(entry);
    }
    series.add(memlog, true);
  };
  report(1, {{"malloc", 1000, 1000}, {"calloc", 50, 50}});
  report(2, {{"calloc", 20, 70}});
  report(3, {{"malloc", 500, 1500}, {"calloc", -70, 0}});
  ASSERT_EQ(series.table().rows().size(), 1u);
  EXPECT_EQ(series.stack_count(), 1u);
  EXPECT_EQ(series.values(0), (std::vector<int64_t>{1050, 1070, 1500}));
}

}  // namespace
}  // namespace mtrace
