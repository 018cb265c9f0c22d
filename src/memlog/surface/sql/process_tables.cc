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
  return {
      {"process", "number of the process, from 1", [](auto& row) { return row.number; }, 0.1},
      {"program", "path of the executable", [](auto& row) { return row.process->program; }},
      {"command", "arguments, escaped as in a memlog; null: not kept",
       [](auto& row) { return known(row.header.command); }},
      {"pid", "process id", [](auto& row) { return row.process->pid; }},
      {"parent", "pid of the process that forked it; null: it was not forked",
       [](auto& row) { return row.header.parent; }},
      {"started_at", "time of its start or fork, ns since 1970",
       [](auto& row) { return known(nanoseconds_of(row.process->started)); }},
      {"host", "name of the machine", [](auto& row) { return known(host_name(row.header.host)); }},
      {"library", "version of mtrace, allocator, and options",
       [](auto& row) { return known(row.header.library); }},
      {"sampled_bytes", "bytes from sample to sample, on average; null: exact",
       [](auto& row) { return known(row.header.sampled.value_or(0)); }},
      {"reports", "number of its reports", [](auto& row) { return row.process->reports.size(); }},
      {"event_log", "its event log; null: none", [](auto& row) { return known(row.log); }},
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
  return {
      {"report", "number of the report, from 1", [](auto& row) { return row.number; }, 0.01},
      {"process", "the process it is about", [](auto& row) { return row.source->process + 1; },
       0.1},
      {"file", "the memlog or ledger", [](auto& row) { return row.source->listed.path; }},
      {"seq", "number in the process, from 1", [](auto& row) { return row.header.seq; }},
      {"merged_from", "first of the reports that were merged into this one, or null",
       [](auto& row) { return row.header.merged; }},
      {"trigger", "signal, exit, api, request, snapshot, recovered or events",
       [](auto& row) { return row.header.trigger; }},
      {"label", "given by the program or by memlog report; null: none",
       [](auto& row) { return known(row.header.label); }},
      {"taken_at", "ns since 1970",
       [](auto& row) { return known(nanoseconds_of(row.header.taken)); }},
      {"delta_bytes", "heap: change since the report before",
       [](auto& row) { return row.header.delta.bytes; }},
      {"delta_blocks", "heap: change since the report before",
       [](auto& row) { return row.header.delta.blocks; }},
      {"live_bytes", "heap: live when the report was taken",
       [](auto& row) { return row.header.live.bytes; }},
      {"live_blocks", "heap: live when the report was taken",
       [](auto& row) { return row.header.live.blocks; }},
      {"inherited_bytes", "live at the fork; null: not forked, or with a ledger",
       [](auto& row) { return row.header.inherited ? Int(row.header.inherited->bytes) : Int(); }},
      {"inherited_blocks", "live at the fork; null: not forked, or with a ledger",
       [](auto& row) { return row.header.inherited ? Int(row.header.inherited->blocks) : Int(); }},
      {"allocated_bytes", "heap: allocated since the start of the process",
       [](auto& row) { return row.header.allocated ? Int(row.header.allocated->bytes) : Int(); }},
      {"allocated_blocks", "heap: allocated since the start of the process",
       [](auto& row) { return row.header.allocated ? Int(row.header.allocated->blocks) : Int(); }},
      {"freed_bytes", "heap: freed since the start of the process",
       [](auto& row) { return row.header.freed ? Int(row.header.freed->bytes) : Int(); }},
      {"freed_blocks", "heap: freed since the start of the process",
       [](auto& row) { return row.header.freed ? Int(row.header.freed->blocks) : Int(); }},
      {"peak_bytes", "the most that was live since the start",
       [](auto& row) { return row.header.peak ? Int(row.header.peak->bytes) : Int(); }},
      {"peak_at", "when that was, ns since 1970",
       [](auto& row) {
         return row.header.peak ? known(nanoseconds_of(row.header.peak->time)) : Int();
       }},
      {"rss_bytes", "resident memory of the process",
       [](auto& row) { return known(row.header.rss.value_or(0)); }},
      {"rss_max_bytes", "the most that it ever was",
       [](auto& row) { return known(row.header.rss_max.value_or(0)); }},
      {"virtual_bytes", "address space of the process",
       [](auto& row) { return known(row.header.virtual_size.value_or(0)); }},
      {"failed_allocations", "calls that returned no memory, since the start",
       [](auto& row) { return row.header.failed_allocations; }},
      {"unknown_frees", "frees of blocks never seen, since the start",
       [](auto& row) { return row.header.unknown_frees; }},
      {"lost", "what could not be counted, as in the memlog; null: nothing",
       [](auto& row) { return known(counts_text(row.header.lost)); }},
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
  return {
      {"process", "the process that loaded it", [](auto& row) { return row.process; }, 0.1},
      {"module", "path", [](auto& row) { return row.module.path; }},
      {"generation", "1: the first of this path in the process",
       [](auto& row) { return row.module.generation; }},
      {"build_id", "in hex; null: none",
       [](auto& row) { return known(util::hex_bytes(row.module.build_id)); }},
      {"base", "load address: the address of ELF address 0",
       [](auto& row) { return row.module.base; }},
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
