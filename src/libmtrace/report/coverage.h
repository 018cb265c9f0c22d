// Whether the program's calls of malloc reach this library, and what a report says when they do
// not.
#pragma once

#include <cstdint>

#include "base/writer.h"
#include "ledger/ledger.h"

namespace mtrace::report {

// Objects whose calls of malloc bypass this library (RTLD_DEEPBIND, dlmopen, -Bsymbolic). An
// object stays listed after it is unloaded, because it may leave memory behind that is not counted.
//
// All functions are thread-safe and async-signal-safe.

// Number of functions whose calls are checked.
inline constexpr unsigned kWatchedFunctions = 10;
// Call at start, when no other thread checks. For each function: its name, this library's own, and
// the one that the loader finds first.
void set_bound_here(const char* const (&names)[kWatchedFunctions],
                    const void* const (&own)[kWatchedFunctions],
                    const void* const (&first)[kWatchedFunctions]);

// Checks where the calls of all objects that are loaded now lead.
void look_for_bypasses();
// Call before dlclose(handle): checks the objects that it may unload, at most 8: the handle's own
// and the next ones in the loader's list, where those are that were loaded with it. Costs nothing
// for objects loaded with the program, else some 10 us for a known object and 70 us for a new one.
// Does nothing once the program may have a filter of system calls.
void look_before_unloading(const void* handle);

// Writes lines "# note: not covered: ...". Objects being recorded are left out.
void write_bypasses(Writer& out);

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
