// The tables markers and memory.
#include <algorithm>

#include "collect/timelines.h"
#include "sql/instant.h"
#include "sql/row_table.h"
#include "sql/tables.h"

namespace mtrace::sql {
namespace {

constexpr auto kInteger = Type::kInteger;
constexpr auto kText = Type::kText;

struct MarkerRow {
  size_t process;  // from 1
  uint64_t at;     // nanoseconds since 1970
  const char* kind;
  std::string text;
  size_t report;  // from 1
};

RowTable<MarkerRow>::Columns marker_columns() {
  using Row = MarkerRow;
  return {
      {{"process", kInteger, "the process", 0.1},
       [](const Row& row, Cell cell) { cell.number(row.process); }},
      {{"at", kInteger, "ns since 1970"}, [](const Row& row, Cell cell) { cell.known(row.at); }},
      {{"kind", kText, "report, or note: a text of the program (mtrace_note)"},
       [](const Row& row, Cell cell) { cell.text(row.kind); }},
      {{"text", kText, "the label of the report, or the note; null: none"},
       [](const Row& row, Cell cell) { cell.known(row.text); }},
      {{"report", kInteger, "the report, or the one that has the note"},
       [](const Row& row, Cell cell) { cell.number(row.report); }},
  };
}

std::vector<MarkerRow> marker_rows(const Data& data, const Constraints& constraints) {
  std::vector<MarkerRow> rows;
  const Constraints::Range of = constraints.range("process");
  for (size_t i = 0; i < data.sources.reports().size(); ++i) {
    data.check();
    const size_t process = data.sources.reports()[i].process + 1;
    if (!of.holds(static_cast<int64_t>(process))) continue;
    const profile::Header header = data.sources.report(i)->header();
    // A note of the program begins with its time; others are mtrace's remarks.
    for (const std::string& note : header.notes) {
      const size_t blank = note.find(' ');
      const auto at = read_instant(std::string_view(note).substr(0, blank));
      if (!at || blank == std::string::npos) continue;
      rows.push_back({process, static_cast<uint64_t>(*at), "note", note.substr(blank + 1), i + 1});
    }
    rows.push_back({process, nanoseconds_of(header.taken), "report", header.label, i + 1});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const MarkerRow& a, const MarkerRow& b) {
    return std::tie(a.process, a.at) < std::tie(b.process, b.at);
  });
  return rows;
}

struct MemoryRow {
  size_t process;  // from 1
  uint64_t at;     // nanoseconds since 1970
  profile::Sample sample;
};

RowTable<MemoryRow>::Columns memory_columns() {
  using Row = MemoryRow;
  return {
      {{"process", kInteger, "the process", 0.1},
       [](const Row& row, Cell cell) { cell.number(row.process); }},
      {{"at", kInteger, "end of the interval, ns since 1970"},
       [](const Row& row, Cell cell) { cell.number(row.at); }},
      {{"live_bytes", kInteger, "heap: the most that was live in the interval"},
       [](const Row& row, Cell cell) { cell.number(row.sample.live); }},
      {{"live_blocks", kInteger, "heap: live at that moment"},
       [](const Row& row, Cell cell) { cell.number(row.sample.blocks); }},
      {{"resident_bytes", kInteger, "the most that was resident in the interval"},
       [](const Row& row, Cell cell) { cell.number(row.sample.resident); }},
      {{"allocations", kInteger, "calls in the interval"},
       [](const Row& row, Cell cell) { cell.number(row.sample.allocations); }},
  };
}

std::vector<MemoryRow> memory_rows(const Data& data, const Constraints& constraints) {
  constexpr uint64_t kMillisecond = 1'000'000;
  std::vector<MemoryRow> rows;
  const Constraints::Range of = constraints.range("process");
  const std::vector<Process>& all = data.sources.processes();
  for (size_t i = 0; i < all.size(); ++i) {
    data.check();
    if (!of.holds(static_cast<int64_t>(i + 1))) continue;
    const ReportSource& first = data.sources.reports()[all[i].reports.front()];
    profile::Header header;
    header.pid = all[i].pid;
    header.started = all[i].started;
    const auto timeline = collect::timeline_beside(first.listed.path, header);
    if (!timeline) continue;
    const uint64_t start = nanoseconds_of(all[i].started);
    for (const profile::Sample& sample : timeline->samples) {
      rows.push_back({i + 1, start + sample.milliseconds * kMillisecond, sample});
    }
  }
  return rows;
}

}  // namespace

void add_time_tables(Tables& tables, const Data& data) {
  tables.push_back(list_table<MarkerRow>(
      "markers", "a moment that the program or memlog has marked", 1000, marker_columns(),
      [&data](const Constraints& constraints) { return marker_rows(data, constraints); }));
  tables.push_back(list_table<MemoryRow>(
      "memory", "an interval of the timeline of a process", 10'000, memory_columns(),
      [&data](const Constraints& constraints) { return memory_rows(data, constraints); }));
}

}  // namespace mtrace::sql
