// What tracing costs the program: in reports, in the status block and in the header of the ledger.
// Thread-safe; async-signal-safe.
#pragma once

#include <cstdint>

#include "base/writer.h"
#include "format/cost.h"
#include "ledger/ledger.h"

namespace mtrace::report {

// Measures the memory of the tables: some system calls for each 2 MiB of the shadow of the heap.
// Other processes see it from now on.
format::OwnCost measure_cost(const ledger::Ledger& ledger);
// A thread of the program has written a report for so long.
void add_stopped(uint64_t nanoseconds);
// The process samples from now on, because its tables have passed MTRACE_MAX_MEMORY.
void samples_since(uint64_t time);
// To the header of a ledger that was made just now.
void show_cost();
// Nothing has been stopped yet.
void reset_cost();

// A line "# cost: ..."; `calls`: how many were counted, 0: they are not known.
void write_cost(Writer& out, const ledger::Ledger& ledger, uint64_t calls);
// A line "# note: ..." that says since when the process samples, if it counted every block before.
void write_sampling_since(Writer& out);

}  // namespace mtrace::report
