// Whether the program's calls of malloc reach this library, and what a report says when they do
// not.
#pragma once

#include <cstdint>

#include "base/writer.h"
#include "ledger/ledger.h"

namespace mtrace::report {

// Number of functions whose calls are checked.
inline constexpr unsigned kWatchedFunctions = 10;

// The checked functions, malloc first: names; `own`: this library's; `first`: those that the loader
// finds first.
struct EntryPoints {
  const char* names[kWatchedFunctions];
  const void* own[kWatchedFunctions];
  const void* first[kWatchedFunctions];
  bool late;      // attached to a running program, whose calls were redirected here
  bool replaced;  // valgrind redirects calls of this library's own functions
  bool glibc;     // all functions that allocate are glibc's
};
// At start, when no other thread checks.
void set_entry_points(const EntryPoints& entry_points);
const EntryPoints& entry_points();

// Path of the object whose malloc hides this library's; nullptr: none does. `is_program`: receives
// whether it is the program itself.
const char* hiding_object(bool* is_program);

// Call before dlclose(handle): checks the objects that it may unload, at most 8: the handle's own
// and the next ones in the loader's list, where those are that were loaded with it. Costs nothing
// for objects loaded with the program, else some 10 us for a known object and 70 us for a new one.
// Does nothing once the program may have a filter of system calls. Thread-safe; async-signal-safe.
void look_before_unloading(const void* handle);

// Writes lines "# note: not covered: ...", one a cause, also for each object whose calls of malloc
// bypass this library (RTLD_DEEPBIND, dlmopen, -Bsymbolic). Such an object stays listed after it is
// unloaded, because it may leave memory behind that is not counted. Objects that another thread is
// recording are left out. Async-signal-safe; one report at a time.
void write_coverage(Writer& out, const ledger::ThreadTotals& totals);

}  // namespace mtrace::report
