// The table entries.

#include "surface/sql/entry_table.h"

#include <algorithm>

#include "surface/sql/tables.h"
#include "util/text.h"

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

}  // namespace mtrace::sql
