// The table entries.
#include "model/events/live_blocks.h"
#include "model/symbols/symbolizer.h"
#include "surface/fleet/store.h"
#include "surface/sql/tables.h"
#include "surface/sql/virtual_table.h"
#include "util/text.h"
#include "view/analyze/function_name.h"
#include "view/reports/reports.h"

namespace mtrace::sql {
namespace {

RowTable<EntryRow>::Columns entry_columns() {
  return {
      {"report", "the report", [](auto& row) { return row.report; }, 0.01},
      {"process", "the process", [](auto& row) { return row.process; }, 0.1},
      {"kind", "heap, or what a resource is called, as mmap",
       [](auto& row) { return row.entry->heap() ? "heap" : std::string_view(row.entry->kind); }},
      {"stack", "id of the stack; null: the entry has no frames",
       [](auto& row) { return known(row.stack); }, 0.001},
      {"bytes", "change since the report before", [](auto& row) { return row.entry->bytes; }},
      {"blocks", "change since the report before", [](auto& row) { return row.entry->blocks; }},
      {"live_bytes", "what the stack holds; null: the report does not say",
       [](auto& row) { return row.entry->tells_live ? Int(row.entry->live) : Int(); }},
      {"allocated_blocks", "allocated since the report before",
       [](auto& row) { return row.entry->activity.allocations; }},
      {"allocated_bytes", "allocated since the report before",
       [](auto& row) { return row.entry->activity.allocated_bytes; }},
      {"freed_blocks", "freed since the report before",
       [](auto& row) { return row.entry->activity.frees; }},
      {"freed_bytes", "freed since the report before",
       [](auto& row) { return row.entry->activity.freed_bytes; }},
      {"temporary_blocks", "of the freed: by the thread that allocated it and nothing since",
       [](auto& row) { return row.entry->activity.temporary; }},
      {"short_lived_blocks", "of the freed: soon after their allocation",
       [](auto& row) { return row.entry->activity.short_lived; }},
      {"lifetime_min_ms", "of the freed blocks; null: none was freed",
       [](auto& row) {
         return row.entry->activity.frees != 0 ? Int(row.entry->activity.lifetime.least) : Int();
       }},
      {"lifetime_mean_ms", "of the freed blocks; null: none was freed",
       [](auto& row) {
         return row.entry->activity.frees != 0 ? Int(row.entry->activity.lifetime.mean) : Int();
       }},
      {"lifetime_max_ms", "of the freed blocks; null: none was freed",
       [](auto& row) {
         return row.entry->activity.frees != 0 ? Int(row.entry->activity.lifetime.most) : Int();
       }},
      {"oldest_ms", "age of the oldest live block", [](auto& row) { return row.entry->age; }},
      {"slack_bytes", "given by the allocator beyond what was asked for",
       [](auto& row) { return row.entry->slack; }},
      {"peak_bytes", "what the stack held at the peak of the process",
       [](auto& row) { return row.entry->peak; }},
      {"error_bytes", "standard error of the change; 0: exact",
       [](auto& row) { return row.entry->error; }},
      {"live_error_bytes", "standard error of the live bytes; 0: exact",
       [](auto& row) { return row.entry->live_error; }},
  };
}

}  // namespace

void add_entry_table(Tables& tables, const Data& data) {
  tables.push_back(std::make_unique<RowTable<EntryRow>>(
      "entries", "what a stack did since the report before", 100'000, entry_columns(),
      [&data] { return std::make_unique<EntryStream>(data); }));
}

void EntryStream::begin(const Constraints& constraints) {
  reports_ = constraints.range("report");
  processes_ = constraints.range("process");
  stack_ = constraints.text("stack");
  index_ = static_cast<size_t>(std::max<int64_t>(reports_.least, 1) - 1);
  report_ = nullptr;
}

const EntryRow* EntryStream::next() {
  for (;;) {
    if (report_ != nullptr && at_ < count()) {
      const size_t at = stack_ ? found_[at_] : at_;
      row_.entry = &report_->entries()[at];
      row_.number = at + 1;
      ++at_;
      const uint64_t id = row_.entry->stack;
      row_.stack = id == 0 ? "" : stack_text(id);
      return &row_;
    }
    if (!next_report()) return nullptr;
  }
}

bool EntryStream::next_report() {
  report_ = nullptr;
  for (; report_ == nullptr && index_ < data_.sources.reports().size(); ++index_) {
    data_.check();
    row_.report = index_ + 1;
    row_.process = data_.sources.reports()[index_].process + 1;
    if (!reports_.holds(static_cast<int64_t>(row_.report))) return false;
    if (!processes_.holds(static_cast<int64_t>(row_.process))) continue;
    report_ = data_.sources.report(index_);
    at_ = 0;
    data_.stacks.learn(report_->memlog());
    const auto id = stack_ ? util::read_stack_id(*stack_) : std::nullopt;
    if (stack_) found_ = id ? report_->of_stack(*id) : std::vector<size_t>();
  }
  return report_ != nullptr;
}

// The tables processes, reports and modules.
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
  for (const LogSource& source : data.sources.logs()) {
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

// The tables stacks and frames.
namespace {

struct StackRow {
  StackBook* book = nullptr;
  size_t stack = 0;  // position in the book
  size_t frame = 0;

  const analyze::Row& row() const { return book->stack(stack); }
  const profile::Frame& at() const { return row().frames[frame]; }
};

// The stack that the query names, or all of them.
class StackStream : public Stream<StackRow> {
 public:
  explicit StackStream(const Data& data) : data_(data) { row_.book = &data.stacks; }

  void begin(const Constraints& constraints) override {
    first_ = true;
    row_.frame = 0;
    const auto id = constraints.text("stack");
    const auto one = id ? data_.stacks.find(std::string_view(*id)) : std::nullopt;
    row_.stack = one.value_or(0);
    end_ = one ? *one + 1 : id ? 0 : data_.stacks.stacks().size();
  }

  const StackRow* next() override {
    data_.check();
    if (!first_) ++row_.stack;
    first_ = false;
    return row_.stack < end_ ? &row_ : nullptr;
  }

 protected:
  const Data& data_;
  StackRow row_;
  size_t end_ = 0;
  bool first_ = true;
};

// Each frame of these stacks.
class FrameStream : public StackStream {
 public:
  using StackStream::StackStream;

  const StackRow* next() override {
    if (!first_ && ++row_.frame < row_.row().frames.size()) return &row_;
    row_.frame = 0;
    do {
      if (StackStream::next() == nullptr) return nullptr;
    } while (row_.row().frames.empty());
    return &row_;
  }
};

Text function_of(const StackRow& row) { return known(row.at().function.text()); }

Text file_of(const StackRow& row) { return known(symbols::split_source(row.at().source).first); }

Int line_of(const StackRow& row) { return known(symbols::split_source(row.at().source).second); }

// An inlined frame is in the module of the frame that it is inlined into.
Text module_of(const StackRow& row) {
  const profile::Frames& frames = row.row().frames;
  size_t at = row.frame;
  while (at + 1 < frames.size() && frames[at].place == profile::Place::kInlined) ++at;
  if (frames[at].place != profile::Place::kModule) return {};
  return known(row.book->modules()[frames[at].module].path);
}

// What is so of the responsible frame, if the stack has one.
template <typename Value>
Value own(const StackRow& row, Value (*value)(const StackRow&)) {
  const auto frame = row.book->own(row.stack);
  return frame ? value({row.book, row.stack, *frame}) : Value();
}

RowTable<StackRow>::Columns stack_columns() {
  return {
      {"stack", "id: 16 hex digits, the same in every report, run and machine",
       [](auto& row) { return stack_text(row.row().stack); }, 0.00001},
      {"depth", "number of frames, inlined ones too",
       [](auto& row) { return row.row().frames.size(); }},
      {"cut", "1: the stack goes on beyond the depth", [](auto& row) { return row.row().cut; }},
      {"own_level", "level of the frame that is responsible; null: cut before it",
       [](auto& row) { return row.book->own(row.stack); }},
      {"own_function", "its function; null: unknown",
       [](auto& row) { return own(row, function_of); }},
      {"own_file", "its source file; null: unknown", [](auto& row) { return own(row, file_of); }},
      {"own_line", "its source line; null: unknown", [](auto& row) { return own(row, line_of); }},
      {"own_module", "path of its module; null: none",
       [](auto& row) { return own(row, module_of); }},
      {"text", "the functions, innermost first, parted by <",
       [](auto& row) { return row.book->text(row.stack); }},
  };
}

RowTable<StackRow>::Columns frame_columns() {
  return {
      {"stack", "id of the stack", [](auto& row) { return stack_text(row.row().stack); }, 0.00001},
      {"level", "0: the innermost frame, which called malloc", [](auto& row) { return row.frame; }},
      {"function", "as in the source; null: unknown", [](auto& row) { return function_of(row); }},
      {"file", "source file; null: unknown", [](auto& row) { return file_of(row); }},
      {"line", "in the source file; null: unknown", [](auto& row) { return line_of(row); }},
      {"module", "path of the program or library; null: none",
       [](auto& row) { return module_of(row); }},
      {"offset", "ELF address in the module, or address without one; null: inlined",
       [](auto& row) {
         return row.at().place != profile::Place::kInlined ? Int(row.at().offset) : Int();
       }},
      {"inlined", "1: inlined into the next frame that is not",
       [](auto& row) { return row.at().place == profile::Place::kInlined; }},
      {"own", "1: the program's own code, not a library's",
       [](auto& row) {
         return row.book->responsible().own(row.row().frames, row.frame, row.book->modules());
       }},
  };
}

}  // namespace

void add_stack_tables(Tables& tables, const Data& data) {
  tables.push_back(std::make_unique<RowTable<StackRow>>(
      "stacks", "a call stack", 100'000, stack_columns(),
      [&data] { return std::make_unique<StackStream>(data); }));
  tables.push_back(std::make_unique<RowTable<StackRow>>(
      "frames", "a frame of a stack, inlined ones too", 1'000'000, frame_columns(),
      [&data] { return std::make_unique<FrameStream>(data); }));
}

// The table fleet: what the tables of several machines have in common.
namespace {

struct FleetRow {
  EntryRow entry;
  const IndexedReport* report = nullptr;
  StackBook* book = nullptr;
  std::string process;
  std::string build_id;
  std::optional<size_t> stack;  // position in the book

  const profile::Header& header() const { return report->header(); }
  const analyze::Row& row() const { return book->stack(*stack); }
};

Text function_id_of(const FleetRow& row) {
  if (!row.stack) return {};
  return stack_text(analyze::function_id(row.row().frames, row.book->modules()));
}

Text own_function_of(const FleetRow& row) {
  const auto own = row.stack ? row.book->own(*row.stack) : std::nullopt;
  return own ? Text(row.book->function(*row.stack, *own)) : Text();
}

RowTable<FleetRow>::Columns fleet_columns() {
  return {
      {"report", "the report", [](auto& row) { return row.entry.report; }, 0.01},
      {"process_key", "HOST/PROGRAM-PID-START-BOOT: the process among all machines",
       [](auto& row) { return row.process; }},
      {"host", "name of the machine; null: unknown",
       [](auto& row) { return known(row.header().host); }},
      {"program", "path of the executable", [](auto& row) { return row.header().program; }},
      {"build_id", "of the executable, in hex; null: unknown",
       [](auto& row) { return known(row.build_id); }},
      {"pid", "process id", [](auto& row) { return row.header().pid; }},
      {"started_at", "time of the process's start or fork, ns since 1970",
       [](auto& row) { return nanoseconds_of(row.header().started); }},
      {"first_seq", "seq, or the first of the reports that were merged into this one",
       [](auto& row) { return row.header().merged.value_or(row.header().seq); }},
      {"seq", "number of the report in its process, from 1",
       [](auto& row) { return row.header().seq; }},
      {"taken_at", "time of the report, ns since 1970",
       [](auto& row) { return nanoseconds_of(row.header().taken); }},
      {"label", "of the report; null: none", [](auto& row) { return known(row.header().label); }},
      {"entries", "number of entries of the report",
       [](auto& row) { return row.report->entries().size(); }},
      {"entry", "number of the entry in the report, from 1",
       [](auto& row) { return row.entry.number; }},
      {"kind", "heap, or what a resource is called, as mmap",
       [](auto& row) {
         const profile::Entry& entry = *row.entry.entry;
         return entry.heap() ? "heap" : std::string_view(entry.kind);
       }},
      {"stack", "id of the stack; null: the entry has no frames",
       [](auto& row) { return known(row.entry.stack); }, 0.001},
      {"fn", "id of its functions, the same in all builds; null: no frames",
       [](auto& row) { return function_id_of(row); }},
      {"own_function", "function of own code that is responsible; null: cut before it",
       [](auto& row) { return own_function_of(row); }},
      {"bytes", "change since the report before", [](auto& row) { return row.entry.entry->bytes; }},
      {"blocks", "change since the report before",
       [](auto& row) { return row.entry.entry->blocks; }},
      {"live_bytes", "what the stack holds; null: the report does not say",
       [](auto& row) { return row.entry.entry->tells_live ? Int(row.entry.entry->live) : Int(); }},
      {"allocated_blocks", "allocated since the report before",
       [](auto& row) { return row.entry.entry->activity.allocations; }},
      {"allocated_bytes", "allocated since the report before",
       [](auto& row) { return row.entry.entry->activity.allocated_bytes; }},
      {"freed_blocks", "freed since the report before",
       [](auto& row) { return row.entry.entry->activity.frees; }},
      {"freed_bytes", "freed since the report before",
       [](auto& row) { return row.entry.entry->activity.freed_bytes; }},
      {"peak_bytes", "what the stack held at the peak of the process",
       [](auto& row) { return row.entry.entry->peak; }},
  };
}

class FleetStream : public Stream<FleetRow> {
 public:
  explicit FleetStream(const Data& data) : entries_(data) { row_.book = &data.stacks; }

  void begin(const Constraints& constraints) override { entries_.begin(constraints); }
  const FleetRow* next() override {
    const EntryRow* entry = entries_.next();
    if (entry == nullptr) return nullptr;
    if (row_.report == nullptr || row_.entry.report != entry->report) open();
    row_.report = &entries_.report();
    row_.entry = *entry;
    const uint64_t id = entry->entry->stack;
    row_.stack = id == 0 ? std::nullopt : row_.book->find(id);
    return &row_;
  }

 private:
  void open() {
    const profile::Memlog& memlog = entries_.report().memlog();
    row_.process = fleet::process_key(memlog.header);
    row_.build_id.clear();
    for (const profile::Module& module : memlog.modules) {
      if (module.path == memlog.header.program) row_.build_id = util::hex_bytes(module.build_id);
    }
  }

  EntryStream entries_;
  FleetRow row_;
};

}  // namespace

void add_fleet_table(Tables& tables, const Data& data) {
  tables.push_back(std::make_unique<RowTable<FleetRow>>(
      "fleet", "an entry of a report with what tells its process among all machines", 100'000,
      fleet_columns(), [&data] { return std::make_unique<FleetStream>(data); }));
}

// The tables markers and memory.
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
void add_logged_markers(const LogSource& source, const Data& data, std::vector<MarkerRow>& rows) {
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
  for (const LogSource& source : data.sources.logs()) {
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
void add_logged_memory(const LogSource& source, const Data& data, std::vector<MemoryRow>& rows) {
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
