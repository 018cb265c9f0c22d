// Whether the program's calls of malloc reach this library, and what a report says when they do
// not.
#pragma once

#include <cstdint>

#include "base/writer.h"
#include "ledger/ledger.h"
#include "report/bypasses.h"

namespace mtrace::report {

// The checked functions, malloc first: names; `own`: this library's; `first`: those that the loader
// finds first. Set once, at start.
struct Entrances {
  const char* names[kWatchedFunctions];
  const void* own[kWatchedFunctions];
  const void* first[kWatchedFunctions];
  bool late;      // attached to a running program, whose calls were redirected here
  bool replaced;  // valgrind redirects calls of this library's own functions
  bool glibc;     // all functions that allocate are glibc's
};
void set_entrances(const Entrances& entrances);

// Path of the object whose malloc hides this library's; nullptr: none does. `is_program`: receives
// whether it is the program itself.
const char* hiding_object(bool* is_program);

// Entrances::replaced, late and glibc.
bool is_replaced();
bool began_late();
bool malloc_is_glibcs();

// Writes lines "# note: not covered: ...", one a cause. Async-signal-safe; one report at a time.
void write_coverage(Writer& out, const ledger::ThreadTotals& totals);

}  // namespace mtrace::report
