// What a report tells of its stacks beyond bytes and blocks: read, merged, summed, put in words.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model/profile/reader.h"
#include "model/profile/writer.h"
#include "sample.h"
#include "tool_test.h"
#include "util/error.h"
#include "view/analyze/table.h"
#include "view/text/report_text.h"
#include "view/text/style.h"

namespace mtrace {
namespace {

using analyze::Order;
using analyze::Row;

constexpr char kPeakTime[] = "2026-11-20T20:15:12.000412Z";

// kLines with every key and field; the numbers are all different.
std::vector<std::string> full_lines() {
  auto lines = test::kLines;
  const auto insert = [&](size_t number, const std::string& line) {
    lines.insert(lines.begin() + static_cast<ptrdiff_t>(number) - 1, line);
  };
  // From the end, so that the numbers of the lines before stay.
  insert(30, "# resolution: 4.096 ms");
  insert(29, "# rss-max: 5000001 bytes\n# virtual: 5000002 bytes");
  insert(28,
         "# calls: malloc=11 new[]=12\n# failed-allocations: 13\n# unknown-frees: 14\n"
         "# misuse: pop_empty=15\n# reports: written=16 failed=17");
  insert(24, "# kind: mmap 4096 bytes 1 blocks\n# kind: huge-2M 0 bytes 0 blocks");
  lines[20] = "-40\tblocks=-1\tlive=0\tfrees=1\tfreed=40\tpeak=7\tstack=0000000000000001\tfuture=x";
  lines[13] =
      "+100\tblocks=+3\tlive=126720\tallocs=8\tallocated=150\tfrees="
      "5\tfreed=50\ttemporary=4"
      "\tshort-lived=2\tlifetime-min=20\tlifetime-mean=21\tlifetime-max=22\tage=23\tslack=24"
      "\tpeak=25\tstack=5f3e1a90c2d4b718";
  insert(14, "# recording: stopped");
  insert(13, "# peak-error: 18 bytes");
  insert(10, "# sampled: 524288 bytes");
  return lines;
}

TEST(Facts, EachIsRead) {
  const std::string text = test::join(full_lines());
  const profile::Memlog memlog = profile::read("f", text);
  EXPECT_EQ(profile::write(memlog), text);
  const profile::Header& header = memlog.header;
  EXPECT_EQ(header.peak, (profile::Peak{2441128, kPeakTime}));
  EXPECT_EQ(header.peak_error, 18u);
  EXPECT_EQ(header.sampled, 524288u);
  EXPECT_TRUE(header.stopped);
  EXPECT_EQ(header.kinds,
            (std::vector<profile::KindTotal>{{"mmap", {4096, 1}}, {"huge-2M", {0, 0}}}));
  EXPECT_EQ(header.calls, (std::vector<profile::Field>{{"malloc", "11"}, {"new[]", "12"}}));
  EXPECT_EQ(header.failed_allocations, 13u);
  EXPECT_EQ(header.unknown_frees, 14u);
  EXPECT_EQ(header.misuse, (std::vector<profile::Field>{{"pop_empty", "15"}}));
  EXPECT_EQ(header.reports, (std::vector<profile::Field>{{"written", "16"}, {"failed", "17"}}));
  EXPECT_EQ(header.rss_max, 5000001u);
  EXPECT_EQ(header.virtual_size, 5000002u);
  EXPECT_EQ(header.resolution, "4.096");
  const profile::Entry& entry = memlog.entries[0];
  EXPECT_EQ(entry.activity, (profile::Activity{8, 150, 5, 50, 4, 2, {20, 21, 22}}));
  EXPECT_EQ(entry.age, 23u);
  EXPECT_EQ(entry.slack, 24u);
  EXPECT_EQ(entry.peak, 25u);
}

// By the sizes that an entry tells: one that is new, one of which some is new and some is gone, and
// one of which nothing is known but what it holds.
TEST(Facts, ErrorsOfSamplesAreWorkedOut) {
  auto lines = test::kLines;
  lines[13] =
      "+300000\tblocks=+3000\tlive=300000\tallocs=3000\tallocated=300000\tstack=5f3e1a90c2d4b718";
  lines[20] =
      "-1000\tblocks=-10\tlive=90000\tallocs=500\tallocated=50000\tfrees=510\tfreed=51000\tstack="
      "0000000000000001";
  lines[9] = "# delta: +299000 bytes +2990 blocks";
  lines.insert(lines.begin() + 9, "# sampled: 1000 bytes");
  const profile::Memlog memlog = profile::read("f", test::join(lines));
  const auto variance = [](double blocks) { return blocks * 10000 / std::expm1(0.101); };
  const auto near = [](uint64_t found, double square) {
    return std::abs(static_cast<double>(found) - std::sqrt(square)) < 1;
  };
  EXPECT_PRED2(near, memlog.entries[0].error, variance(3000));
  EXPECT_PRED2(near, memlog.entries[0].live_error, variance(3000));
  EXPECT_PRED2(near, memlog.entries[1].error, variance(1010));
  EXPECT_PRED2(near, memlog.entries[1].live_error, 90000.0 * 1000);
  EXPECT_PRED2(near, memlog.header.delta_error.value_or(0), variance(4010));
}

// What smaps says of mappings without a name is added up by what they are.
TEST(Facts, RegionsAreNamed) {
  const auto read_with = [](const std::vector<std::string>& regions) {
    auto lines = test::kLines;
    for (const std::string& region : regions) {
      lines.insert(lines.end() - 4, "# region: resident=" + region);
    }
    for (std::string& line : lines) {
      if (line.starts_with("# rss: ")) line = "# rss: 100000000 bytes";
    }
    return profile::read("f", test::join(lines)).header;
  };
  const std::vector<std::string> some = {
      "30000000 size=40000000 malloc",       "20000000 size=20000000 anonymous rw-p low",
      "9000000 size=9000001 anonymous rw-p", "9000000 size=9000002 anonymous rw-s",
      "7000 size=8000 anonymous r-xp low",   "6000 size=6000 anonymous rw-p stack",
      "5000 size=5000 anonymous rw-p chunk", "4000 size=4000 anonymous rw-p um"};
  profile::Header header = read_with(some);
  using Regions = std::vector<profile::RegionUse>;
  EXPECT_EQ(header.regions, (Regions{{"mapped without a name", 38000000, 38000003},
                                     {"malloc", 30000000, 40000000},
                                     {"code made at run time", 7000, 8000},
                                     {"stacks of threads", 6000, 6000},
                                     {"V8 heap", 5000, 5000},
                                     {"supplied by the program (userfaultfd)", 4000, 4000}}));
  const std::string note = "resident, not malloc's: mapped without a name 36 MiB (of 95 MiB)";
  EXPECT_EQ(header.notes.back(), note);

  auto with_java = some;
  with_java.push_back("10 size=20 /usr/lib/jvm/libjvm.so");
  header = read_with(with_java);
  EXPECT_EQ(header.regions[1], (profile::RegionUse{"Java heap", 20000000, 20000000}));
  EXPECT_EQ(header.notes.back(), "resident, not malloc's: Java heap 19 MiB (of 95 MiB)");
}

// One changed byte is noticed or leaves a memlog that can be written and read again.
TEST(Facts, SurviveEachChangedByte) {
  const std::string text = test::join(full_lines());
  for (size_t at = 0; at < text.size(); ++at) {
    for (const int byte : {0, 9, 10, 32, 40, 43, 46, 48, 57, 61, 122, 255}) {
      std::string changed = text;
      changed[at] = static_cast<char>(byte);
      try {
        const std::string again = profile::write(profile::read("f", changed));
        ASSERT_EQ(profile::write(profile::read("f", again)), again) << at << ' ' << byte;
      } catch (const util::FormatError&) {
      }
    }
  }
}

TEST(Facts, OlderReportsTellNone) {
  const profile::Memlog memlog = profile::read("f", test::small_memlog({"(0x1)"}));
  EXPECT_EQ(memlog.header.peak, std::nullopt);
  EXPECT_EQ(memlog.header.peak_error, std::nullopt);
  EXPECT_FALSE(memlog.header.stopped);
  EXPECT_EQ(memlog.header.failed_allocations, std::nullopt);
  EXPECT_EQ(memlog.entries[0].activity, profile::Activity{});
  EXPECT_EQ(memlog.entries[0].peak, 0u);
}

// The sum is found at the entry that makes it too large; what the file calls its error is allowed.
TEST(Facts, SharesComeToThePeakAtMost) {
  const auto with = [](const std::string& more, int first, int second) {
    auto lines = test::kLines;
    lines[13] += fmt::format("\tpeak={}", first);
    lines[20] += fmt::format("\tpeak={}", second);
    lines[22] += "\tpeak=999999999";  // not heap
    lines[11] += more;
    return test::error_of(test::join(lines));
  };
  EXPECT_EQ(with("", 2441127, 1), "no error");
  EXPECT_EQ(with("", 2441127, 2),
            "f:21: the entries' peak= add up to more than the peak of the process");
  EXPECT_EQ(with("\n# peak-error: 1 bytes", 2441127, 2), "no error");
  EXPECT_EQ(with("\n# peak-error: 1 bytes", 2441127, 3),
            "f:22: the entries' peak= add up to more than the peak of the process");
  // Nor is the order of temporary and frees checked: the library reads them while threads go on.
  auto lines = test::kLines;
  lines[13] += "\ttemporary=7\tshort-lived=9";
  EXPECT_EQ(test::error_of(test::join(lines)), "no error");
}

// A report of one stack whose entry has `fields`.
profile::Memlog report(const std::string& fields, int64_t seq = 1, const std::string& before = "",
                       const std::string& frame = "(/a+0x1)", bool timed = true) {
  std::string text =
      test::small_memlog({frame, "(/a+0x2)"}, timed ? "# resolution: 1.000 ms\n" : "", seq);
  const size_t at = text.find("\tstack=");
  text.insert(at, fields);
  text.insert(text.find("# lost"), before);
  return profile::read("f", text);
}

TEST(Facts, MergedStacks) {
  analyze::Table table;
  table.merge(
      report("\tallocs=4\tallocated=70\tfrees=3\tfreed=6\ttemporary=2\tshort-lived=1"
             "\tlifetime-min=10\tlifetime-mean=20\tlifetime-max=40\tage=5\tslack=8\tpeak=100"),
      analyze::innermost(1));
  table.merge(report("\tallocs=2\tallocated=65\tfrees=1\tfreed=1\ttemporary=1"
                     "\tlifetime-min=3\tlifetime-mean=3\tlifetime-max=3\tage=9"
                     "\tslack=16\tpeak=11"),
              analyze::innermost(1));
  // Nothing freed, so no lifetime; then frees that no clock was read for.
  table.merge(report("\tage=7"), analyze::innermost(1));
  table.merge(report("\tallocs=9\tallocated=72\tfrees=8\tfreed=8", 1, "", "(/a+0x1)", false),
              analyze::innermost(1));
  ASSERT_EQ(table.rows().size(), 1u);
  const Row& row = table.rows()[0];
  EXPECT_EQ(row.bytes, 4 * 64);
  EXPECT_EQ(row.live, 4u * 64);
  EXPECT_EQ(row.allocations, 15u);
  EXPECT_EQ(row.frees, 12u);
  EXPECT_EQ(row.temporary, 3u);
  EXPECT_EQ(row.short_lived, 1u);
  EXPECT_EQ(row.lifetimes.frees, 4u);
  EXPECT_EQ(row.lifetimes.least, 3u);
  EXPECT_EQ(row.lifetimes.most, 40u);
  EXPECT_EQ(row.lifetimes.mean(), (3 * 20 + 3) / 4u);
  EXPECT_EQ(row.age, 9u);
  EXPECT_EQ(row.slack, 24u);
  EXPECT_EQ(row.peak, 111u);
}

// Blocks that were freed within the resolution lived 0 ms; they count in the mean.
TEST(Facts, LifetimesBelowTheResolution) {
  analyze::Table table;
  table.merge(report("\tallocs=4\tallocated=67\tfrees=3\tfreed=3"), analyze::innermost(1));
  table.merge(report("\tallocs=2\tallocated=65\tfrees=1\tfreed=1\tlifetime-min=8"
                     "\tlifetime-mean=8\tlifetime-max=8"),
              analyze::innermost(1));
  EXPECT_EQ(table.rows()[0].lifetimes.least, 0u);
  EXPECT_EQ(table.rows()[0].lifetimes.mean(), 2u);
}

TEST(Facts, OneLifetimeIsSaidOnce) {
  std::string text = test::small_memlog({"(/a+0x1)"}, "# resolution: 1.000 ms\n");
  text.insert(text.find("\tstack="),
              "\tallocs=2\tallocated=65\tfrees=1\tfreed=1\tlifetime-min=8\tlifetime-mean=8"
              "\tlifetime-max=8");
  const test::TemporaryDirectory directory;
  test::write_file(directory / "a.memlog", text);
  const test::Outcome shown = test::memlog({"show", "--no-resolve", directory / "a.memlog"});
  EXPECT_HAS(shown.out, "1 free 1 bytes; lifetime 8 ms\n");
}

TEST(Facts, SumsThatDoNotFitAreNoticed) {
  const std::string most = "9223372036854775807";
  for (const std::string key : {"temporary", "short-lived", "slack", "peak"}) {
    analyze::Table table;
    table.merge(report("\t" + key + "=" + most), {});
    table.merge(report("\t" + key + "=" + most), {});
    EXPECT_THROW(table.merge(report("\t" + key + "=" + most), {}), std::runtime_error) << key;
  }
}

TEST(Facts, LaterReportsOfAProcessCount) {
  const std::string first = fmt::format("# peak: 500 bytes {}\n", kPeakTime);
  const std::string moved = "# peak: 600 bytes 2026-11-20T20:15:13.000000Z\n";
  const auto sum = [](const std::vector<profile::Memlog>& memlogs) {
    auto sums = analyze::sum_processes(memlogs);
    EXPECT_EQ(sums.size(), 1u);
    return sums[0].table.rows();
  };
  const profile::Memlog a =
      report("\tallocs=1\tallocated=64\ttemporary=1\tage=90\tslack=8\tpeak=100", 1, first);
  const profile::Memlog b = report("\ttemporary=2\tage=50\tslack=4\tpeak=30", 2, moved);
  auto rows = sum({b, a});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].bytes, 128);
  EXPECT_EQ(rows[0].live, std::nullopt);
  EXPECT_EQ(rows[0].temporary, 3u);
  EXPECT_EQ(rows[0].age, 50u);
  EXPECT_EQ(rows[0].slack, 4u);
  EXPECT_EQ(rows[0].peak, 30u);
  // A stack that the later report does not list keeps what was said, unless the peak has moved.
  const profile::Memlog other = report("\tpeak=7", 2, first, "(/a+0x9)");
  rows = sum({a, other});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].age, 90u);
  EXPECT_EQ(rows[0].peak, 100u);
  EXPECT_EQ(rows[1].peak, 7u);
  rows = sum({a, report("\tpeak=7", 2, moved, "(/a+0x9)")});
  EXPECT_EQ(rows[0].age, 90u);
  EXPECT_EQ(rows[0].peak, 0u);
}

TEST(Facts, KindsNeverMixWithHeap) {
  auto lines = full_lines();
  const std::string text = test::join(lines);
  profile::Memlog memlog = profile::read("f", text);
  for (profile::Entry& entry : memlog.entries) entry.frames = {};
  analyze::Table table;
  table.merge(memlog, analyze::innermost(1));
  size_t heap = 0;
  for (const Row& row : table.rows()) heap += row.kind.empty();
  EXPECT_EQ(table.rows().size() - heap, 1u);
}

TEST(Facts, OrderIsDescendingThenByStack) {
  std::vector<Row> rows(5);
  const uint64_t peaks[] = {5, 9, 5, 0, 9};
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].peak = peaks[i];
    rows[i].stack = 100 - i;
  }
  rows[4].kind = "mmap";
  rows[3].bytes = 7;
  EXPECT_EQ(analyze::drop_empty(rows, Order::kPeak), 1u);
  analyze::sort(rows, Order::kPeak);
  std::vector<uint64_t> stacks;
  for (const Row& row : rows) stacks.push_back(row.stack);
  EXPECT_EQ(stacks, (std::vector<uint64_t>{99, 98, 100, 96}));
  EXPECT_EQ(analyze::drop_empty(rows, Order::kBytes), 4u);
}

TEST(Facts, Durations) {
  text::Style style;
  EXPECT_EQ(text::duration_text(11520000, style), "11520000 ms");
  style.units = true;
  EXPECT_EQ(text::duration_text(0, style), "0 ms");
  EXPECT_EQ(text::duration_text(999, style), "999 ms");
  EXPECT_EQ(text::duration_text(59999, style), "59.9 s");
  EXPECT_EQ(text::duration_text(60000, style), "1 min 0 s");
  EXPECT_EQ(text::duration_text(11520000, style), "3 h 12 min");
  EXPECT_EQ(text::duration_text(86400000, style), "1 d 0 h");
  EXPECT_EQ(text::duration_text(INT64_MAX, style), "106751991167 d 7 h");
}

TEST(Facts, EveryOrderHasWords) {
  Row row;
  row.live = 1;
  for (int i = 0; i <= static_cast<int>(Order::kStack); ++i) {
    text::Style style;
    style.order = static_cast<Order>(i);
    const bool leads = style.order != Order::kBytes && style.order != Order::kStack;
    EXPECT_EQ(!text::lead_text(row, 0, style).empty(), leads) << i;
    EXPECT_NE(text::lack_text(style.order), nullptr);
    EXPECT_EQ(text::facts_text(row, style), "");
  }
}

}  // namespace
}  // namespace mtrace
