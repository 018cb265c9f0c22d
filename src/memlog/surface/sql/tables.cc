#include "surface/sql/tables.h"

#include "model/events/live_blocks.h"
#include "surface/sql/virtual_table.h"
#include "util/text.h"
#include "view/text/event_text.h"

namespace mtrace::sql {

Tables all_tables(const Data& data) {
  Tables tables;
  add_process_tables(tables, data);
  add_entry_table(tables, data);
  add_fleet_table(tables, data);
  add_stack_tables(tables, data);
  add_allocation_table(tables, data);
  add_event_tables(tables, data);
  add_time_tables(tables, data);
  return tables;
}
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kDay = 86400 * kSecond;

}  // namespace

std::optional<int64_t> read_instant(std::string_view text) {
  constexpr size_t kDate = 10;  // YYYY-MM-DD
  if (text.size() <= kDate || (text[kDate] != 'T' && text[kDate] != ' ')) return std::nullopt;
  std::string_view rest = text.substr(kDate + 1);
  if (rest.ends_with('Z')) rest.remove_suffix(1);
  return util::read_instant(text.substr(0, kDate), rest);
}

std::optional<int64_t> read_instant(std::string_view text, int64_t near) {
  if (const auto since = util::read_time_of_day(text)) {
    return near / kDay * kDay + static_cast<int64_t>(*since);
  }
  return read_instant(text);
}

uint64_t nanoseconds_of(std::string_view text) {
  return static_cast<uint64_t>(read_instant(text).value_or(0));
}

std::string time_text(int64_t nanoseconds) {
  int64_t rest = nanoseconds % kSecond;
  if (rest < 0) rest += kSecond;
  return util::time_text((nanoseconds - rest) / kSecond, static_cast<uint64_t>(rest),
                         rest % 1000 == 0 ? 6 : 9);
}

// The table allocations: blocks of event logs, with their whole lives, and of ledgers.
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
    const std::vector<LogSource>& logs = data_.sources.logs();
    while (log_ < logs.size()) {
      const LogSource& source = logs[log_++];
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
      const SnapshotBlock& block = source.ledger->blocks[at_++];
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

// The tables events and threads, of event logs.
namespace {

using events::Kind;

struct EventRow {
  size_t process = 0;  // from 1
  uint64_t number = 0;
  const events::EventLog* log = nullptr;
  events::Event event;
};

const char* kind_text(const EventRow& row) {
  switch (row.event.kind) {
    case Kind::kAllocation:
      return "allocation";
    case Kind::kFree:
      return "free";
    case Kind::kUnknownFree:
      return "unknown-free";
    case Kind::kRealloc:
      return "realloc";
    default:
      return text::event_name(row.event, *row.log);
  }
}

bool has_call(Kind kind) {
  return kind == Kind::kAllocation || kind == Kind::kFree || kind == Kind::kUnknownFree ||
         kind == Kind::kRealloc;
}

bool has_size(Kind kind) {
  return kind == Kind::kAllocation || kind == Kind::kRealloc || kind == Kind::kMap ||
         kind == Kind::kUnmap || kind == Kind::kRemap || kind == Kind::kInherited;
}

RowTable<EventRow>::Columns event_columns() {
  return {
      {"process", "the process", [](auto& row) { return row.process; }, 0.1},
      {"event", "number of the event in its log, from 1", [](auto& row) { return row.number; }},
      {"at", "ns since 1970; never decreases", [](auto& row) { return row.event.time; }, 0.001},
      {"kind", "allocation, free, realloc, mmap, note ...: as memlog events prints it",
       [](auto& row) { return kind_text(row); }, 0.1},
      {"thread", "see threads; null: of no thread",
       [](auto& row) { return known(row.event.thread); }},
      {"call", "function that was called; null: the kind has none",
       [](auto& row) {
         return has_call(row.event.kind) ? Text(text::event_name(row.event, *row.log)) : Text();
       }},
      {"address", "of the block or mapping; null: the kind or a compact log has none",
       [](auto& row) { return address_of(row.event.address); }},
      {"old_address", "before a realloc or mremap",
       [](auto& row) { return address_of(row.event.old_address); }},
      {"block", "number of the block in a compact log; null: it has an address",
       [](auto& row) { return block_of(row.event.address); }},
      {"old_block", "the same, before a realloc",
       [](auto& row) { return block_of(row.event.old_address); }},
      {"size", "requested bytes",
       [](auto& row) { return has_size(row.event.kind) ? Int(row.event.requested) : Int(); }},
      {"old_size", "bytes before a mremap", [](auto& row) { return known(row.event.old_size); }},
      {"usable", "bytes that the allocator gave",
       [](auto& row) { return known(row.event.usable); }},
      {"stack", "id of the stack; null: not recorded",
       [](auto& row) {
         return row.event.stack != 0 ? Text(stack_text(row.log->stack(row.event.stack).id))
                                     : Text();
       }},
      {"number", "of the report or fork; bytes resident; events lost; inherited: birth",
       [](auto& row) { return known(row.event.number); }},
      {"text", "the note, or the label of the report",
       [](auto& row) { return known(row.event.text); }, 0.001},
  };
}

class EventStream : public Stream<EventRow> {
 public:
  explicit EventStream(const Data& data) : data_(data) {}

  void begin(const Constraints& constraints) override {
    processes_ = constraints.range("process");
    times_ = constraints.range("at");
    kind_ = constraints.text("kind");
    text_ = constraints.text("text");
    events_.reset();
    index_ = 0;
  }

  const EventRow* next() override {
    while (events_ != nullptr || open()) {
      // Times never decrease.
      if (!events_->next(row_.event) || static_cast<int64_t>(row_.event.time) > times_.most) {
        events_.reset();
        continue;
      }
      ++row_.number;
      if (static_cast<int64_t>(row_.event.time) < times_.least || !wanted()) continue;
      data_.stacks.learn(*row_.log, row_.event.stack, learned_);
      return &row_;
    }
    return nullptr;
  }

 private:
  bool wanted() const {
    return (!text_ || row_.event.text == *text_) && (!kind_ || kind_text(row_) == *kind_);
  }

  bool open() {
    const std::vector<LogSource>& logs = data_.sources.logs();
    while (index_ < logs.size()) {
      const LogSource& source = logs[index_++];
      row_.process = source.process + 1;
      if (!processes_.holds(static_cast<int64_t>(row_.process))) continue;
      events_ = std::make_unique<LoggedEvents>(source.path, data_);
      row_.log = &events_->log();
      row_.number = 0;
      learned_ = 0;
      return true;
    }
    return false;
  }

  const Data& data_;
  Constraints::Range processes_;
  Constraints::Range times_;
  std::optional<std::string> kind_;
  std::optional<std::string> text_;
  std::unique_ptr<LoggedEvents> events_;
  uint32_t learned_ = 0;  // stacks of the log that the book knows
  size_t index_ = 0;      // of the next log
  EventRow row_;
};

struct ThreadRow {
  size_t process;  // from 1
  uint32_t number;
  events::EventThread thread;
};

RowTable<ThreadRow>::Columns thread_columns() {
  return {
      {"process", "the process", [](auto& row) { return row.process; }, 0.1},
      {"thread", "number of the thread in its process, from 1",
       [](auto& row) { return row.number; }},
      {"tid", "the kernel's number", [](auto& row) { return row.thread.tid; }},
      {"name", "of the thread; null: none", [](auto& row) { return known(row.thread.name); }},
  };
}

// Threads are known once their log was read.
std::vector<ThreadRow> thread_rows(const Data& data, const Constraints& constraints) {
  std::vector<ThreadRow> rows;
  const Constraints::Range of = constraints.range("process");
  for (const LogSource& source : data.sources.logs()) {
    if (!of.holds(static_cast<int64_t>(source.process + 1))) continue;
    LoggedEvents all(source.path, data);
    for (events::Event event; all.next(event);) {
    }
    const events::EventLog& log = all.log();
    for (uint32_t number = 1; number <= log.thread_count(); ++number) {
      rows.push_back({source.process + 1, number, log.thread(number)});
    }
  }
  return rows;
}

}  // namespace

void add_event_tables(Tables& tables, const Data& data) {
  tables.push_back(std::make_unique<RowTable<EventRow>>(
      "events", "an event of an event log", 1'000'000, event_columns(),
      [&data] { return std::make_unique<EventStream>(data); }));
  tables.back()->pass = kLogPass;
  tables.push_back(list_table<ThreadRow>(
      "threads", "a thread of an event log", 100, thread_columns(),
      [&data](const Constraints& constraints) { return thread_rows(data, constraints); }));
  tables.back()->pass = kLogPass;
}

}  // namespace mtrace::sql
