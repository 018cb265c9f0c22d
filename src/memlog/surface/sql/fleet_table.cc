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

void put_function_id(const FleetRow& row, Cell cell) {
  if (row.stack) cell.text(stack_text(analyze::function_id(row.row().frames, row.book->modules())));
}

void put_own_function(const FleetRow& row, Cell cell) {
  const auto own = row.stack ? row.book->own(*row.stack) : std::nullopt;
  if (own) cell.text(row.book->function(*row.stack, *own));
}

RowTable<FleetRow>::Columns fleet_columns() {
  using Row = FleetRow;
  return {
      {{"report", kInteger, "the report", 0.01},
       [](const Row& row, Cell cell) { cell.number(row.entry.report); }},
      {{"process_key", kText, "HOST/PROGRAM-PID-START-BOOT: the process among all machines"},
       [](const Row& row, Cell cell) { cell.text(row.process); }},
      {{"host", kText, "name of the machine; null: unknown"},
       [](const Row& row, Cell cell) { cell.known(row.header().host); }},
      {{"program", kText, "path of the executable"},
       [](const Row& row, Cell cell) { cell.text(row.header().program); }},
      {{"build_id", kText, "of the executable, in hex; null: unknown"},
       [](const Row& row, Cell cell) { cell.known(row.build_id); }},
      {{"pid", kInteger, "process id"},
       [](const Row& row, Cell cell) { cell.number(row.header().pid); }},
      {{"started_at", kInteger, "time of the process's start or fork, ns since 1970"},
       [](const Row& row, Cell cell) { cell.number(nanoseconds_of(row.header().started)); }},
      {{"first_seq", kInteger, "seq, or the first of the reports that were merged into this one"},
       [](const Row& row, Cell cell) {
         cell.number(row.header().merged.value_or(row.header().seq));
       }},
      {{"seq", kInteger, "number of the report in its process, from 1"},
       [](const Row& row, Cell cell) { cell.number(row.header().seq); }},
      {{"taken_at", kInteger, "time of the report, ns since 1970"},
       [](const Row& row, Cell cell) { cell.number(nanoseconds_of(row.header().taken)); }},
      {{"label", kText, "of the report; null: none"},
       [](const Row& row, Cell cell) { cell.known(row.header().label); }},
      {{"entries", kInteger, "number of entries of the report"},
       [](const Row& row, Cell cell) { cell.number(uint64_t{row.report->entries().size()}); }},
      {{"entry", kInteger, "number of the entry in the report, from 1"},
       [](const Row& row, Cell cell) { cell.number(row.entry.number); }},
      {{"kind", kText, "heap, or what a resource is called, as mmap"},
       [](const Row& row, Cell cell) {
         const profile::Entry& entry = *row.entry.entry;
         cell.text(entry.heap() ? "heap" : std::string_view(entry.kind));
       }},
      {{"stack", kText, "id of the stack; null: the entry has no frames", 0.001},
       [](const Row& row, Cell cell) { cell.known(row.entry.stack); }},
      {{"fn", kText, "id of its functions, the same in all builds; null: no frames"},
       put_function_id},
      {{"own_function", kText, "function of own code that is responsible; null: cut before it"},
       put_own_function},
      {{"bytes", kInteger, "change since the report before"},
       [](const Row& row, Cell cell) { cell.number(row.entry.entry->bytes); }},
      {{"blocks", kInteger, "change since the report before"},
       [](const Row& row, Cell cell) { cell.number(row.entry.entry->blocks); }},
      {{"live_bytes", kInteger, "what the stack holds; null: the report does not say"},
       [](const Row& row, Cell cell) {
         if (row.entry.entry->tells_live) cell.number(row.entry.entry->live);
       }},
      {{"allocated_blocks", kInteger, "allocated since the report before"},
       [](const Row& row, Cell cell) { cell.number(row.entry.entry->activity.allocations); }},
      {{"allocated_bytes", kInteger, "allocated since the report before"},
       [](const Row& row, Cell cell) { cell.number(row.entry.entry->activity.allocated_bytes); }},
      {{"freed_blocks", kInteger, "freed since the report before"},
       [](const Row& row, Cell cell) { cell.number(row.entry.entry->activity.frees); }},
      {{"freed_bytes", kInteger, "freed since the report before"},
       [](const Row& row, Cell cell) { cell.number(row.entry.entry->activity.freed_bytes); }},
      {{"peak_bytes", kInteger, "what the stack held at the peak of the process"},
       [](const Row& row, Cell cell) { cell.number(row.entry.entry->peak); }},
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
