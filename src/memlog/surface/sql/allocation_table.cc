// The table allocations: blocks of event logs, with their whole lives, and of ledgers.
#include <algorithm>

#include "model/events/live_blocks.h"
#include "surface/sql/event_tables.h"
#include "surface/sql/tables.h"
#include "surface/sql/virtual_table.h"

namespace mtrace::sql {
namespace {

struct AllocationRow {
  size_t process = 0;  // from 1
  uint64_t address = 0;
  events::LiveBlock block;
  uint64_t died = 0;  // nanoseconds since 1970; 0: it lives
  uint32_t freed_by = 0;
  uint32_t freed_stack = 0;
  const events::EventLog* log = nullptr;  // null: the block is from a ledger, which knows less
  uint64_t ledger_stack = 0;

  uint64_t stack() const { return log == nullptr ? ledger_stack : log->stack(block.stack).id; }
};

std::optional<double> lifetime_of(const AllocationRow& row) {
  if (row.died == 0) return std::nullopt;
  return static_cast<double>(std::max(row.died, row.block.time) - row.block.time) / 1e9;
}

RowTable<AllocationRow>::Columns allocation_columns() {
  return {
      {"process", "the process", [](auto& row) { return row.process; }, 0.1},
      {"id", "number of the block in its process, in the order of allocation",
       [](auto& row) { return row.block.id; }},
      {"address", "of the block; null: the log is compact",
       [](auto& row) { return address_of(row.address); }},
      {"size", "requested bytes", [](auto& row) { return row.block.requested; }},
      {"usable", "bytes that the allocator gave; null: from a ledger, unknown",
       [](auto& row) { return row.log != nullptr ? Int(row.block.usable) : Int(); }},
      {"call", "malloc, calloc, realloc, new ...; null: from a ledger, unknown",
       [](auto& row) {
         return row.log != nullptr ? Text(row.log->call(row.block.stack, row.block.call)) : Text();
       }},
      {"thread", "that allocated it, see threads; null: inherited, or from a ledger",
       [](auto& row) { return known(row.block.thread); }},
      {"stack", "id of the stack that allocated it",
       [](auto& row) { return stack_text(row.stack()); }, 0.001},
      {"allocated_at", "ns since 1970; from a ledger exact to about 1 ms",
       [](auto& row) { return row.block.time; }, 0.001},
      {"freed_at", "ns since 1970; null: it lives", [](auto& row) { return known(row.died); },
       0.001},
      {"lifetime", "seconds from its allocation to its end; null: it lives",
       [](auto& row) { return lifetime_of(row); }},
      {"freed_by", "thread that freed or reallocated it; null: it lives",
       [](auto& row) { return known(row.freed_by); }},
      {"freed_stack", "id of the stack that did; null: not recorded",
       [](auto& row) {
         return row.freed_stack != 0 ? Text(stack_text(row.log->stack(row.freed_stack).id))
                                     : Text();
       }},
      {"chain", "number of the chain of reallocs; null: from a ledger, unknown",
       [](auto& row) { return known(row.block.chain); }},
      {"step", "reallocs of the chain before, from 0; null: as chain",
       [](auto& row) { return row.log != nullptr ? Int(row.block.step) : Int(); }},
  };
}

// What a query asks of the blocks.
struct Wanted {
  Constraints::Range processes;
  Constraints::Range born;
  Constraints::Range died;
  std::optional<std::string> stack;
  bool living = false;

  Wanted() = default;
  explicit Wanted(const Constraints& constraints)
      : processes(constraints.range("process")),
        born(constraints.range("allocated_at")),
        died(constraints.range("freed_at")),
        stack(constraints.text("stack")),
        living(constraints.null("freed_at")) {}

  bool holds(const AllocationRow& row) const {
    if (living && row.died != 0) return false;
    if (row.died != 0 && !died.holds(static_cast<int64_t>(row.died))) return false;
    return born.holds(static_cast<int64_t>(row.block.time)) &&
           (!stack || *stack == stack_text(row.stack()));
  }
};

// The blocks of an event log: those that were freed, in the order of their end, then those that
// live at the end of the log, in the order of their allocation. Holds only the live ones.
class LoggedBlocks {
 public:
  LoggedBlocks(const std::string& path, const Data& data) : events_(path, data) {}

  const events::EventLog& log() const { return events_.log(); }

  // Stores the next block in `row`; false: there are no more.
  bool next(AllocationRow& row) {
    for (events::Event event; !ended_;) {
      if (!events_.next(event)) {
        gather_living();
        break;
      }
      blocks_.expect(events_.log());
      const events::BlockChange change = blocks_.apply(event);
      if (!change.ended) continue;
      row.block = change.old;
      row.address = change.old_address;
      row.died = event.time;
      row.freed_by = event.thread;
      row.freed_stack = event.kind == events::Kind::kFree ? event.stack : 0;
      return true;
    }
    if (living_.empty()) return false;
    row.address = living_.back().first;
    row.block = living_.back().second;
    row.died = 0;
    row.freed_by = 0;
    row.freed_stack = 0;
    living_.pop_back();
    return true;
  }

 private:
  void gather_living() {
    ended_ = true;
    blocks_.for_each([&](uint64_t address, const events::LiveBlock& block) {
      living_.emplace_back(address, block);
    });
    blocks_ = {};
    std::sort(living_.begin(), living_.end(),
              [](const auto& a, const auto& b) { return a.second.id > b.second.id; });
  }

  LoggedEvents events_;
  events::LiveBlocks blocks_;
  std::vector<std::pair<uint64_t, events::LiveBlock>> living_;  // the first one last
  bool ended_ = false;
};

// The blocks of all logs, then those of the ledgers of processes without a log.
class AllocationStream : public Stream<AllocationRow> {
 public:
  explicit AllocationStream(const Data& data) : data_(data) {}

  void begin(const Constraints& constraints) override {
    wanted_ = Wanted(constraints);
    logged_.reset();
    log_ = 0;
    report_ = 0;
    at_ = 0;
  }

  const AllocationRow* next() override {
    while (next_of_logs() || next_of_ledgers()) {
      if (!wanted_.holds(row_)) continue;
      if (row_.log != nullptr) {
        data_.stacks.learn(*row_.log, std::max(row_.block.stack, row_.freed_stack), learned_);
      }
      return &row_;
    }
    return nullptr;
  }

 private:
  bool next_of_logs() {
    while (logged_ != nullptr || open_log()) {
      if (logged_->next(row_)) return true;
      logged_.reset();
    }
    return false;
  }

  bool open_log() {
    const std::vector<EventSource>& logs = data_.sources.logs();
    while (log_ < logs.size()) {
      const EventSource& source = logs[log_++];
      row_.process = source.process + 1;
      if (!wanted_.processes.holds(static_cast<int64_t>(row_.process))) continue;
      logged_ = std::make_unique<LoggedBlocks>(source.path, data_);
      row_.log = &logged_->log();
      learned_ = 0;
      return true;
    }
    row_ = {};
    return false;
  }

  bool next_of_ledgers() {
    const std::vector<ReportSource>& reports = data_.sources.reports();
    for (; report_ < reports.size(); ++report_, at_ = 0) {
      const ReportSource& source = reports[report_];
      if (source.ledger == nullptr || at_ >= source.ledger->blocks.size() ||
          !data_.sources.processes()[source.process].logs.empty()) {
        continue;
      }
      const LiveBlock& block = source.ledger->blocks[at_++];
      row_.process = source.process + 1;
      row_.address = block.address;
      row_.block.id = at_;
      row_.block.requested = block.size;
      row_.block.time = block.born;
      row_.ledger_stack = block.stack;
      return true;
    }
    return false;
  }

  const Data& data_;
  Wanted wanted_;
  std::unique_ptr<LoggedBlocks> logged_;
  uint32_t learned_ = 0;  // stacks of the log that the book knows
  size_t log_ = 0;        // index of the next one
  size_t report_ = 0;     // index of the present one
  size_t at_ = 0;         // index of its next block
  AllocationRow row_;
};

}  // namespace

void add_allocation_table(Tables& tables, const Data& data) {
  tables.push_back(std::make_unique<RowTable<AllocationRow>>(
      "allocations", "a block: of an event log, or one that a ledger says is live", 1'000'000,
      allocation_columns(), [&data] { return std::make_unique<AllocationStream>(data); }));
  tables.back()->pass = kLogPass;
}

}  // namespace mtrace::sql
