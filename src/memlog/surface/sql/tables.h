// The tables of memlog sql. doc/sql.md describes them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "surface/sql/sources.h"
#include "surface/sql/stack_book.h"
#include "surface/sql/virtual_table.h"

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

}  // namespace mtrace::sql
