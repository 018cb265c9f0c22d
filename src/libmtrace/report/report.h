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

// Sets which stacks reports list, and whether they list the resident bytes of each kind of mapping.
void set_contents(Listed listed, bool regions);
// Sets a note for every report from now on (the program took the signal, ...); nullptr: none.
void set_note(const char* note);

// Writes a report and returns its number; -1 when it could not be written, and the next report has
// the changes. One at a time: kExit and kApi wait for another thread's report, at most 10 seconds;
// the others make that thread write one more, and return 0. Async-signal-safe; blocks all signals
// meanwhile; leaves errno alone. `label`: at most 256 bytes are kept; nullptr: none.
int report(Trigger trigger, const char* label, Names names = Names::kOwn);

// No report begins until release_reports(): for an exec, or a filter for all threads. False: a
// report under way did not end within 10 seconds, and reports are not held.
bool hold_reports();
void release_reports();

// Waits until no report is being written, at most 10 seconds.
void wait_for_reports();

// For life/fork.h, like all reset_*(): forgets a report that another thread of the parent was
// writing.
void reset_reports();

}  // namespace mtrace::report
