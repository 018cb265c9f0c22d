// What a series of reports says that a stack held at each of them.
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
