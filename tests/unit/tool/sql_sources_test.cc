// What memlog sql keeps of the reports that it has read: its time is linear in their number.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "surface/sql/sources.h"
#include "tool_test.h"
#include "view/reports/catalog.h"

namespace mtrace::test {
namespace {

double thread_seconds() {
  timespec time = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// The least of five measurements: what disturbs one only adds to it.
template <typename Work>
double seconds_of(const Work& work) {
  double least = 1e9;
  for (int i = 0; i < 5; ++i) {
    const double start = thread_seconds();
    work();
    least = std::min(least, thread_seconds() - start);
  }
  return least;
}

// A scan of what is kept would pass 2,000 reports on the way to one, and none to the other.
TEST(SqlSources, AKeptReportIsFoundInTheSameTimeHoweverManyWereReadSince) {
  constexpr size_t kReports = 2000;
  const TemporaryDirectory directory;
  for (size_t seq = 1; seq <= kReports; ++seq) {
    write_file(directory / fmt::format("app-1-{}.memlog", seq),
               small_memlog({"main\t(/usr/bin/app+0x20)"}, "", static_cast<int64_t>(seq)));
  }
  sql::Sources sources({directory.path()});
  ASSERT_EQ(sources.reports().size(), kReports);
  const sql::ReportPointer first = sources.report(0);
  for (size_t i = 0; i < kReports; ++i) sources.report(i);
  EXPECT_EQ(sources.report(0), first) << "it was read again";
  const auto look_up = [&](size_t index) {
    return seconds_of([&] {
      for (int i = 0; i < 1000; ++i) EXPECT_EQ(sources.report(index)->header().seq, index + 1);
    });
  };
  EXPECT_LT(look_up(0), 10 * look_up(kReports - 1));
}

// Where merging was cut short. To compare each report with each other would be 400 million steps.
TEST(SqlSources, ContainedReportsAreFoundAmongManyOfOneProcess) {
  constexpr int64_t kReports = 20'000;
  std::vector<reports::Listed> reports(kReports);
  for (int64_t i = 0; i < kReports; ++i) {
    reports::Listed& one = reports[static_cast<size_t>(i)];
    one.seq = i + 1;
    one.first = one.seq == 50 ? 1 : one.seq;
  }
  std::vector<int64_t> dropped;
  const double most = seconds_of([&] {
    std::vector<reports::Listed> all = reports;
    dropped.clear();
    reports::drop_contained(all, [&](const auto& one) { dropped.push_back(one.seq); });
    EXPECT_EQ(all.size(), reports.size() - 49);
    EXPECT_EQ(all.front().seq, 50);
  });
  EXPECT_EQ(dropped.size(), 49u);
  const double copy = seconds_of([&] { std::vector<reports::Listed> all = reports; });
  EXPECT_LT(most, 50 * copy);
}

}  // namespace
}  // namespace mtrace::test
