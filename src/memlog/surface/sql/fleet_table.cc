// The table fleet: what the tables of several machines have in common.
#include "surface/fleet/report_key.h"
#include "surface/sql/entry_table.h"
#include "surface/sql/tables.h"
#include "util/text.h"
#include "view/analyze/function_name.h"

namespace mtrace::sql {
namespace {

struct FleetRow {
  EntryRow entry;
  const Report* report = nullptr;
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

}  // namespace mtrace::sql
