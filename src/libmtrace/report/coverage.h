// Whether the program's calls of malloc come to this library, and what a report says when they do
// not.
#pragma once

#include <cstdint>

#include "base/writer.h"
#include "ledger/ledger.h"
#include "report/bypasses.h"

namespace mtrace::report {

// At start. Functions by name, malloc first; `own`: this library's; `first`: those that the loader
// finds first.
struct Entrances {
  const char* names[kWatchedFunctions];
  const void* own[kWatchedFunctions];
  const void* first[kWatchedFunctions];
  bool late;      // the program ran before, and its calls were led here
  bool replaced;  // valgrind leads calls of this library's own functions elsewhere
};
void set_entrances(const Entrances& entrances);

// Path of the object whose malloc hides this library's; nullptr: none does. `is_program`: it is the
// program itself, which passes nothing on.
const char* hiding_object(bool* is_program);

// See Entrances.
bool is_replaced();

// Lines "# note: not covered: ...", one for each cause. Async-signal-safe; one report at a time.
void write_coverage(Writer& out, const ledger::ThreadTotals& totals);

}  // namespace mtrace::report
