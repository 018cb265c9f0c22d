// What tracing costs the program, for reports, the status block and the header of the ledger.
// Thread-safe; async-signal-safe.
#pragma once

#include <cstdint>

#include "base/writer.h"
#include "format/cost.h"
#include "ledger/ledger.h"

namespace mtrace::report {

// Measures the memory of the tables, with a system call for each part of the heap's shadow, and
// publishes it to other processes.
format::OwnCost measure_cost(const ledger::Ledger& ledger);
// Adds the time that a thread of the program has spent on a report.
void add_stopped(uint64_t nanoseconds);
// The process samples from `time` on (nanoseconds since 1970): its tables passed MTRACE_MAX_MEMORY.
void samples_since(uint64_t time);
// Copies the cost to the header of a new ledger.
void show_cost();
// Sets the time of add_stopped() to 0.
void reset_cost();

// Writes a line "# cost: ...". `calls`: number of counted calls; 0: unknown.
void write_cost(Writer& out, const ledger::Ledger& ledger, uint64_t calls);
// Writes a line "# note: ...": since when the process samples, if it counted every block before.
void write_sampling_since(Writer& out);

}  // namespace mtrace::report
