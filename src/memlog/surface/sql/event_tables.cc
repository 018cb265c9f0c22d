// The tables events and threads, of event logs.

#include "surface/sql/event_tables.h"

#include "surface/sql/tables.h"
#include "surface/sql/virtual_table.h"
#include "view/text/event_text.h"

namespace mtrace::sql {
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
    const std::vector<EventSource>& logs = data_.sources.logs();
    while (index_ < logs.size()) {
      const EventSource& source = logs[index_++];
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
  for (const EventSource& source : data.sources.logs()) {
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
