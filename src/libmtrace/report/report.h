// One report: from the tables to a named file. Nothing here takes a lock, allocates or uses
// stdio, so a signal handler may do all of it, whatever it interrupted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "report/snapshot.h"

namespace mtrace::report {

// What is done about the names of a report.
enum class Names : uint32_t {
  kOwn,   // the resolver fills them in
  kTree,  // and those of reports beside it that other processes have left, unless it has none
  kLeft,  // nothing: an ancestor of this process will
};

enum class Trigger : uint32_t { kSignal, kExit, kApi, kRequest };  // kRequest: through the ledger

// Before anything else here; once more does nothing. False: no memory.
bool prepare_reports();

// The line about allocator and options that each report carries; kept, not copied.
void set_library_line(const char* line);
const char* library_line();
// Which stacks reports list.
void set_listed(Listed listed);
void set_names(Names names);
// Whether new allocations are recorded: reports say when they are not.
void set_recording(bool on);
// Whether reports tell what the mappings of each kind have resident.
void set_regions(bool on);
// Said in every report from now on (the program took the signal, ...); nullptr: nothing.
void set_note(const char* note);

// Writes a report and returns its number; -1 when it could not be written, and then the changes
// stand in the next one. One at a time: a signal or request that comes during another thread's
// report makes that thread write one more and returns 0; other triggers wait, at most 10 seconds.
// Async-signal-safe; blocks all signals meanwhile; leaves errno alone. `label`: at most 255 bytes
// are kept; nullptr: none.
int report(Trigger trigger, const char* label);

// For a process that is about to become another program: no report begins until release_reports().
// False: one that is being written does not come to an end; reports are not held.
bool hold_reports();
void release_reports();

// Waits until no report is being written, at most 10 seconds.
void wait_for_reports();

// As life/reset.h calls it, like the others of this name: reports start at 1 again, and one that another thread of the
// parent was writing is the parent's.
void reset_reports();

}  // namespace mtrace::report
