// Writes a report, from the tables to a named file. Nothing here takes a lock, allocates or uses
// stdio, so a signal handler may call everything, whatever it interrupted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "report/snapshot.h"

namespace mtrace::report {

// Who resolves the names of a report.
enum class Names : uint32_t {
  kOwn,   // this process's resolver
  kTree,  // this process's resolver, also in reports that other processes left beside it
  kLeft,  // an ancestor's resolver, or nobody
};

// kRequest: through the ledger; from kPeak on: MTRACE_REPORT_AT.
enum class Trigger : uint32_t { kSignal, kExit, kApi, kRequest, kPeak, kGrowth, kResident };

// Call before anything else here; a second call does nothing. False: no memory.
bool prepare_reports();

// Sets the line about allocator and options in each report; kept, not copied.
void set_library_line(const char* line);
const char* library_line();
// Sets which stacks reports list.
void set_listed(Listed listed);
void set_names(Names names);
// Sets whether new allocations are recorded: reports say when they are not.
void set_recording(bool on);
// Sets whether reports list the resident bytes of each kind of mapping.
void set_regions(bool on);
// Sets a note for every report from now on (the program took the signal, ...); nullptr: none.
void set_note(const char* note);

// Writes a report and returns its number; -1 when it could not be written, and the next report has
// the changes. One at a time: kExit and kApi wait for another thread's report, at most 10 seconds;
// the others make that thread write one more, and return 0. Async-signal-safe; blocks all signals
// meanwhile; leaves errno alone. `label`: at most 256 bytes are kept; nullptr: none.
int report(Trigger trigger, const char* label);

// Counts a report that was not begun, because the calling thread must make no system calls
// (base/filters.h). The changes are in the next report, and in the ledger for its readers.
void withhold_report();

// No report begins until release_reports(): for an exec, or a filter for all threads. False: a
// report under way did not end within 10 seconds, and reports are not held.
bool hold_reports();
void release_reports();

// Waits until no report is being written, at most 10 seconds.
void wait_for_reports();

// For life/fork.h, like all reset_*(): reports start at 1 again, and a report that another thread
// of the parent was writing is forgotten.
void reset_reports();

}  // namespace mtrace::report
