// The tables processes, reports and modules.
#include <fmt/format.h>

#include <algorithm>

#include "surface/sql/tables.h"
#include "surface/sql/virtual_table.h"
#include "util/text.h"

namespace mtrace::sql {
namespace {

struct ProcessRow {
  size_t number;  // from 1
  const Process* process;
  profile::Header header;  // of the last report, or what the event log says
  std::string log;         // path of the event log; empty: none
};

std::string host_name(const std::string& host) { return host.substr(0, host.find(' ')); }

RowTable<ProcessRow>::Columns process_columns() {
  using Row = ProcessRow;
  return {
      {{"process", kInteger, "number of the process, from 1", 0.1},
       [](const Row& row, Cell cell) { cell.number(row.number); }},
      {{"program", kText, "path of the executable"},
       [](const Row& row, Cell cell) { cell.text(row.process->program); }},
      {{"command", kText, "arguments, escaped as in a memlog; null: not kept"},
       [](const Row& row, Cell cell) { cell.known(row.header.command); }},
      {{"pid", kInteger, "process id"},
       [](const Row& row, Cell cell) { cell.number(row.process->pid); }},
      {{"parent", kInteger, "pid of the process that forked it; null: it was not forked"},
       [](const Row& row, Cell cell) {
         if (row.header.parent) cell.number(*row.header.parent);
       }},
      {{"started_at", kInteger, "time of its start or fork, ns since 1970"},
       [](const Row& row, Cell cell) { cell.known(nanoseconds_of(row.process->started)); }},
      {{"host", kText, "name of the machine"},
       [](const Row& row, Cell cell) { cell.known(host_name(row.header.host)); }},
      {{"library", kText, "version of mtrace, allocator, and options"},
       [](const Row& row, Cell cell) { cell.known(row.header.library); }},
      {{"sampled_bytes", kInteger, "bytes from sample to sample, on average; null: exact"},
       [](const Row& row, Cell cell) { cell.known(row.header.sampled.value_or(0)); }},
      {{"reports", kInteger, "number of its reports"},
       [](const Row& row, Cell cell) { cell.number(row.process->reports.size()); }},
      {{"event_log", kText, "its event log; null: none"},
       [](const Row& row, Cell cell) { cell.known(row.log); }},
  };
}

profile::Header header_of(const events::EventHeader& log) {
  profile::Header header;
  header.command = log.command;
  if (log.parent != 0) header.parent = log.parent;
  header.host = log.host;
  header.library = log.library;
  return header;
}

std::vector<ProcessRow> process_rows(const Data& data, const Constraints& constraints) {
  std::vector<ProcessRow> rows;
  const Constraints::Range wanted = constraints.range("process");
  const std::vector<Process>& all = data.sources.processes();
  for (size_t i = 0; i < all.size(); ++i) {
    data.check();
    if (!wanted.holds(static_cast<int64_t>(i + 1))) continue;
    rows.push_back({i + 1, &all[i],
                    all[i].reports.empty()
                        ? header_of(data.sources.logs()[all[i].logs.front()].header)
                        : data.sources.report(all[i].reports.back())->header(),
                    all[i].logs.empty() ? "" : data.sources.logs()[all[i].logs.front()].path});
  }
  return rows;
}

struct ReportRow {
  size_t number;  // from 1
  const ReportSource* source;
  profile::Header header;
};

std::string counts_text(const std::vector<profile::Field>& counts) {
  std::string out;
  for (const profile::Field& one : counts) {
    if (one.value != "0") out += fmt::format("{}{}={}", out.empty() ? "" : " ", one.key, one.value);
  }
  return out;
}

RowTable<ReportRow>::Columns report_columns() {
  using Row = ReportRow;
  return {
      {{"report", kInteger, "number of the report, from 1", 0.01},
       [](const Row& row, Cell cell) { cell.number(row.number); }},
      {{"process", kInteger, "the process it is about", 0.1},
       [](const Row& row, Cell cell) { cell.number(row.source->process + 1); }},
      {{"file", kText, "the memlog or ledger"},
       [](const Row& row, Cell cell) { cell.text(row.source->listed.path); }},
      {{"seq", kInteger, "number in the process, from 1"},
       [](const Row& row, Cell cell) { cell.number(row.header.seq); }},
      {{"merged_from", kInteger, "first of the reports that were merged into this one, or null"},
       [](const Row& row, Cell cell) {
         if (row.header.merged) cell.number(*row.header.merged);
       }},
      {{"trigger", kText, "signal, exit, api, request, snapshot, recovered or events"},
       [](const Row& row, Cell cell) { cell.text(row.header.trigger); }},
      {{"label", kText, "given by the program or by memlog report; null: none"},
       [](const Row& row, Cell cell) { cell.known(row.header.label); }},
      {{"taken_at", kInteger, "ns since 1970"},
       [](const Row& row, Cell cell) { cell.known(nanoseconds_of(row.header.taken)); }},
      {{"delta_bytes", kInteger, "heap: change since the report before"},
       [](const Row& row, Cell cell) { cell.number(row.header.delta.bytes); }},
      {{"delta_blocks", kInteger, "heap: change since the report before"},
       [](const Row& row, Cell cell) { cell.number(row.header.delta.blocks); }},
      {{"live_bytes", kInteger, "heap: live when the report was taken"},
       [](const Row& row, Cell cell) { cell.number(row.header.live.bytes); }},
      {{"live_blocks", kInteger, "heap: live when the report was taken"},
       [](const Row& row, Cell cell) { cell.number(row.header.live.blocks); }},
      {{"inherited_bytes", kInteger, "live at the fork; null: not forked, or with a ledger"},
       [](const Row& row, Cell cell) {
         if (row.header.inherited) cell.number(row.header.inherited->bytes);
       }},
      {{"inherited_blocks", kInteger, "live at the fork; null: not forked, or with a ledger"},
       [](const Row& row, Cell cell) {
         if (row.header.inherited) cell.number(row.header.inherited->blocks);
       }},
      {{"allocated_bytes", kInteger, "heap: allocated since the start of the process"},
       [](const Row& row, Cell cell) {
         if (row.header.allocated) cell.number(row.header.allocated->bytes);
       }},
      {{"allocated_blocks", kInteger, "heap: allocated since the start of the process"},
       [](const Row& row, Cell cell) {
         if (row.header.allocated) cell.number(row.header.allocated->blocks);
       }},
      {{"freed_bytes", kInteger, "heap: freed since the start of the process"},
       [](const Row& row, Cell cell) {
         if (row.header.freed) cell.number(row.header.freed->bytes);
       }},
      {{"freed_blocks", kInteger, "heap: freed since the start of the process"},
       [](const Row& row, Cell cell) {
         if (row.header.freed) cell.number(row.header.freed->blocks);
       }},
      {{"peak_bytes", kInteger, "the most that was live since the start"},
       [](const Row& row, Cell cell) {
         if (row.header.peak) cell.number(row.header.peak->bytes);
       }},
      {{"peak_at", kInteger, "when that was, ns since 1970"},
       [](const Row& row, Cell cell) {
         if (row.header.peak) cell.known(nanoseconds_of(row.header.peak->time));
       }},
      {{"rss_bytes", kInteger, "resident memory of the process"},
       [](const Row& row, Cell cell) { cell.known(row.header.rss.value_or(0)); }},
      {{"rss_max_bytes", kInteger, "the most that it ever was"},
       [](const Row& row, Cell cell) { cell.known(row.header.rss_max.value_or(0)); }},
      {{"virtual_bytes", kInteger, "address space of the process"},
       [](const Row& row, Cell cell) { cell.known(row.header.virtual_size.value_or(0)); }},
      {{"failed_allocations", kInteger, "calls that returned no memory, since the start"},
       [](const Row& row, Cell cell) {
         if (row.header.failed_allocations) cell.number(*row.header.failed_allocations);
       }},
      {{"unknown_frees", kInteger, "frees of blocks never seen, since the start"},
       [](const Row& row, Cell cell) {
         if (row.header.unknown_frees) cell.number(*row.header.unknown_frees);
       }},
      {{"lost", kText, "what could not be counted, as in the memlog; null: nothing"},
       [](const Row& row, Cell cell) { cell.known(counts_text(row.header.lost)); }},
  };
}

std::vector<ReportRow> report_rows(const Data& data, const Constraints& constraints) {
  std::vector<ReportRow> rows;
  const Constraints::Range wanted = constraints.range("report");
  const Constraints::Range of = constraints.range("process");
  const std::vector<ReportSource>& all = data.sources.reports();
  for (size_t i = 0; i < all.size(); ++i) {
    data.check();
    if (!wanted.holds(static_cast<int64_t>(i + 1)) ||
        !of.holds(static_cast<int64_t>(all[i].process + 1))) {
      continue;
    }
    rows.push_back({i + 1, &all[i], data.sources.report(i)->header()});
  }
  return rows;
}

struct ModuleRow {
  size_t process;  // from 1
  profile::Module module;
};

RowTable<ModuleRow>::Columns module_columns() {
  using Row = ModuleRow;
  return {
      {{"process", kInteger, "the process that loaded it", 0.1},
       [](const Row& row, Cell cell) { cell.number(row.process); }},
      {{"module", kText, "path"}, [](const Row& row, Cell cell) { cell.text(row.module.path); }},
      {{"generation", kInteger, "1: the first of this path in the process"},
       [](const Row& row, Cell cell) { cell.number(uint64_t{row.module.generation}); }},
      {{"build_id", kText, "in hex; null: none"},
       [](const Row& row, Cell cell) { cell.known(util::hex_bytes(row.module.build_id)); }},
      {{"base", kInteger, "load address: the address of ELF address 0"},
       [](const Row& row, Cell cell) { cell.number(row.module.base); }},
  };
}

std::vector<ModuleRow> module_rows(const Data& data, const Constraints& constraints) {
  std::vector<ModuleRow> rows;
  const Constraints::Range of = constraints.range("process");
  for (const EventSource& source : data.sources.logs()) {
    const bool reported = !data.sources.processes()[source.process].reports.empty();
    if (reported || !of.holds(static_cast<int64_t>(source.process + 1))) continue;
    events::EventLog log(source.path);
    while (log.skip_chunk()) data.check();
    for (const profile::Module& module : log.modules()) {
      if (module.described) rows.push_back({source.process + 1, module});
    }
  }
  size_t first = 0;  // of the process
  for (size_t i = 0; i < data.sources.reports().size(); ++i) {
    data.check();
    const size_t process = data.sources.reports()[i].process + 1;
    if (!of.holds(static_cast<int64_t>(process))) continue;
    if (!rows.empty() && rows.back().process != process) first = rows.size();
    for (const profile::Module& module : data.sources.report(i)->memlog().modules) {
      const bool known = std::any_of(
          rows.begin() + static_cast<std::ptrdiff_t>(first), rows.end(), [&](const ModuleRow& row) {
            return row.process == process && row.module.path == module.path &&
                   row.module.generation == module.generation;
          });
      if (module.described && !known) rows.push_back({process, module});
    }
  }
  return rows;
}

}  // namespace

void add_process_tables(Tables& tables, const Data& data) {
  tables.push_back(list_table<ProcessRow>(
      "processes", "a process", 100, process_columns(),
      [&data](const Constraints& constraints) { return process_rows(data, constraints); }));
  tables.push_back(list_table<ReportRow>(
      "reports", "a report of a process; a ledger is one more", 1000, report_columns(),
      [&data](const Constraints& constraints) { return report_rows(data, constraints); }));
  tables.push_back(list_table<ModuleRow>(
      "modules", "a program or library that stacks of a process are in", 1000, module_columns(),
      [&data](const Constraints& constraints) { return module_rows(data, constraints); }));
}

}  // namespace mtrace::sql
