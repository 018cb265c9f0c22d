// The tables markers and memory.
#include <algorithm>

#include "model/events/live_blocks.h"
#include "surface/sql/event_tables.h"
#include "surface/sql/tables.h"
#include "surface/sql/virtual_table.h"
#include "view/reports/companions.h"

namespace mtrace::sql {
namespace {

struct MarkerRow {
  size_t process;  // from 1
  uint64_t at;     // nanoseconds since 1970
  const char* kind;
  std::string text;
  size_t report;  // from 1; 0: it is from an event log
};

RowTable<MarkerRow>::Columns marker_columns() {
  return {
      {"process", "the process", [](auto& row) { return row.process; }, 0.1},
      {"at", "ns since 1970", [](auto& row) { return known(row.at); }},
      {"kind", "report, or note: a text of the program (mtrace_note)",
       [](auto& row) { return row.kind; }},
      {"text", "the label of the report, or the note; null: none",
       [](auto& row) { return known(row.text); }},
      {"report", "the report, or the one that has the note; null: from an event log",
       [](auto& row) { return known(row.report); }},
  };
}

// The markers of a process that has an event log and no report.
void add_logged_markers(const EventSource& source, const Data& data, std::vector<MarkerRow>& rows) {
  const size_t process = source.process + 1;
  LoggedEvents logged(source.path, data);
  for (events::Event event; logged.next(event);) {
    if (event.kind == events::Kind::kNote) {
      rows.push_back({process, event.time, "note", std::string(event.text), 0});
    } else if (event.kind == events::Kind::kReport) {
      rows.push_back({process, event.time, "report", std::string(event.text), 0});
    }
  }
}

std::vector<MarkerRow> marker_rows(const Data& data, const Constraints& constraints) {
  std::vector<MarkerRow> rows;
  const Constraints::Range of = constraints.range("process");
  for (const EventSource& source : data.sources.logs()) {
    if (of.holds(static_cast<int64_t>(source.process + 1)) &&
        data.sources.processes()[source.process].reports.empty()) {
      add_logged_markers(source, data, rows);
    }
  }
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
  return {
      {"process", "the process", [](auto& row) { return row.process; }, 0.1},
      {"at", "end of the interval, ns since 1970", [](auto& row) { return row.at; }},
      {"live_bytes", "heap: the most that was live in the interval",
       [](auto& row) { return row.sample.live; }},
      {"live_blocks", "heap: live at that moment", [](auto& row) { return row.sample.blocks; }},
      {"resident_bytes", "the most that was resident in the interval",
       [](auto& row) { return row.sample.resident; }},
      {"allocations", "calls in the interval", [](auto& row) { return row.sample.allocations; }},
  };
}

// The memory of a process that has an event log and no timeline: an interval ends with each look at
// what is resident.
void add_logged_memory(const EventSource& source, const Data& data, std::vector<MemoryRow>& rows) {
  LoggedEvents logged(source.path, data);
  events::LiveBlocks blocks;
  uint64_t bytes = 0;
  uint64_t count = 0;
  profile::Sample sample;
  for (events::Event event; logged.next(event);) {
    blocks.expect(logged.log());
    const events::BlockChange change = blocks.apply(event);
    if (change.ended) {
      bytes -= change.old.requested;
      --count;
    }
    if (change.begun) {
      bytes += change.fresh.requested;
      ++count;
      ++sample.allocations;
    }
    if (bytes > sample.live) {
      sample.live = bytes;
      sample.blocks = count;
    }
    if (event.kind == events::Kind::kMemory) sample.resident = event.number;
    if (event.kind != events::Kind::kMemory && event.kind != events::Kind::kEnd) continue;
    rows.push_back({source.process + 1, event.time, sample});
    sample.live = bytes;
    sample.blocks = count;
    sample.allocations = 0;
  }
}

std::vector<MemoryRow> memory_rows(const Data& data, const Constraints& constraints) {
  constexpr uint64_t kMillisecond = 1'000'000;
  std::vector<MemoryRow> rows;
  const Constraints::Range of = constraints.range("process");
  const std::vector<Process>& all = data.sources.processes();
  for (size_t i = 0; i < all.size(); ++i) {
    data.check();
    if (!of.holds(static_cast<int64_t>(i + 1))) continue;
    const std::string& beside = all[i].reports.empty()
                                    ? data.sources.logs()[all[i].logs.front()].path
                                    : data.sources.reports()[all[i].reports.front()].listed.path;
    profile::Header header;
    header.pid = all[i].pid;
    header.started = all[i].started;
    const auto timeline = reports::timeline_beside(beside, header);
    if (!timeline) {
      for (const size_t log : all[i].logs) {
        add_logged_memory(data.sources.logs()[log], data, rows);
      }
      continue;
    }
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
