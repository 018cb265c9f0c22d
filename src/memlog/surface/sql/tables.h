// The tables of memlog sql. doc/sql.md describes them.
#pragma once

#include "model/events/event_log.h"
#include "surface/sql/sources.h"
#include "surface/sql/virtual_table.h"
#include "util/error.h"
#include "util/prelude.h"
#include "util/text.h"

namespace mtrace::sql {

// What the tables read.
struct Data {
  Sources& sources;
  StackBook& stacks;
  // Set by a signal: whatever reads ends with Interrupted.
  const std::atomic<bool>& interrupted;

  void check() const {
    if (interrupted) throw Interrupted();
  }
};

using Tables = std::vector<std::unique_ptr<Table>>;

// What Table::pass is for tables that read event logs.
inline constexpr double kLogPass = 1e6;

// Each appends tables; `data` must outlive them.
void add_process_tables(Tables& tables, const Data& data);    // processes, reports, modules
void add_entry_table(Tables& tables, const Data& data);       // entries
void add_fleet_table(Tables& tables, const Data& data);       // fleet
void add_stack_tables(Tables& tables, const Data& data);      // stacks, frames
void add_allocation_table(Tables& tables, const Data& data);  // allocations
void add_event_tables(Tables& tables, const Data& data);      // events, threads
void add_time_tables(Tables& tables, const Data& data);       // markers, memory

// Returns all of them.
Tables all_tables(const Data& data);

// Times in queries: nanoseconds since 1970, UTC, which SQL can subtract and compare.

// Returns the nanoseconds of YYYY-MM-DDTHH:MM:SS[.fraction][Z]; a blank may stand for the T.
// Returns nothing for another text.
std::optional<int64_t> read_instant(std::string_view text);

// Like read_instant(), also for HH:MM:SS[.fraction], on the day of `near`.
std::optional<int64_t> read_instant(std::string_view text, int64_t near);

// Returns 0 for a text that is no time.
uint64_t nanoseconds_of(std::string_view text);

// Returns 2026-11-20T20:15:31.123456Z, with nine digits where the time has them.
std::string time_text(int64_t nanoseconds);

// The events of an event log, as the tables read them.
class LoggedEvents {
 public:
  // `data` must outlive this. Throws FileError, FormatError.
  LoggedEvents(const std::string& path, const Data& data) : data_(data), log_(path) {}

  const events::EventLog& log() const { return log_; }

  // Stores the next event; false: there are no more. Throws Interrupted, and FormatError at the end
  // of a damaged log: what was counted without its lost events is wrong.
  bool next(events::Event& event) {
    // Not at each event: a signal handler writes what check() reads.
    if ((++count_ & 0xfff) == 0) data_.check();
    const bool any = log_.next(event);
    if (count_ == 1 && !log_.missing_inheritance().empty()) {
      data_.sources.remark(
          fmt::format("{}: {}", util::escaped(log_.path(), ""), log_.missing_inheritance()));
    }
    if (any) return true;
    if (log_.damaged_chunks() != 0) {
      throw util::FormatError(
          log_.path(), 1,
          fmt::format("the event log is damaged (chunks: {}); memlog events prints the rest",
                      log_.damaged_chunks()));
    }
    if (!log_.missing().empty()) {
      data_.sources.remark(fmt::format("{}: {}", util::escaped(log_.path(), ""), log_.missing()));
    }
    return false;
  }

 private:
  const Data& data_;
  events::EventLog log_;
  uint64_t count_ = 0;
};

// The entries of the reports, for the tables entries and fleet.
struct EntryRow {
  size_t report = 0;  // from 1
  size_t process = 0;
  const profile::Entry* entry = nullptr;
  size_t number = 0;  // of the entry in its report, from 1
  std::string stack;  // empty: unknown
};

// Report by report, one in memory; of each only the entries with a stack that the query names.
class EntryStream : public Stream<EntryRow> {
 public:
  explicit EntryStream(const Data& data) : data_(data) {}

  void begin(const Constraints& constraints) override;
  const EntryRow* next() override;

  // The report of the row that next() has returned.
  const IndexedReport& report() const { return *report_; }

 private:
  size_t count() const { return stack_ ? found_.size() : report_->entries().size(); }
  bool next_report();

  const Data& data_;
  Constraints::Range reports_;
  Constraints::Range processes_;
  std::optional<std::string> stack_;
  size_t index_ = 0;           // of the next report
  ReportPointer report_;       // null: none is open
  std::vector<size_t> found_;  // its entries with the stack
  size_t at_ = 0;
  EntryRow row_;
};

}  // namespace mtrace::sql
