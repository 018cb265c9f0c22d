// Writes reports at a trigger and at the end of the process; ends log and ledger before an exec.
#pragma once

#include "report/report.h"

namespace mtrace::life {

// Writes the report of a trigger; returns as report::report(). Async-signal-safe.
int trigger_report(report::Trigger trigger, const char* label);

// What prepare_exec() has done, to be undone if the exec fails.
struct ExecPreparation {
  bool announced;  // in the status block
  bool ended;      // names were waited for, and the ledger has ended
  bool held;       // reports are held
};
// Before an exec: announces it to memlog, waits for names as at the end of the process, and holds
// reports. Discards a pending trigger, which would reach the next program. undo_exec(): after
// an exec that failed.
ExecPreparation prepare_exec();
void undo_exec(ExecPreparation preparation);

// Writes the report at the end of the process, once, and waits for its names.
void report_exit();
// Writes the report before a fatal signal, with the signal's name as label. Async-signal-safe.
void report_fatal(const char* name);

// Allows another report at the end: in a fork's child, or when memlog attaches again.
void begin_reporting();

// ---- MTRACE_REPORT_AT: reports when the process is at its peak, has grown, or is about to use up
// its memory.

// Has reports written as the option wants, after read_options() and before anything is counted.
void watch_for_moments();

// ---- Who fills in the names of a process's last report: in a tree of short processes one process
// does it for all, because starting the resolver costs more than such a process.

// Decides for the report at the end, which is written next. A process that has lived for less than
// MTRACE_NAME_AFTER_MS and whose parent is traced leaves names to its ancestors; any other fills in
// its own, and those of the reports that its descendants have left. Async-signal-safe; opens files
// of /proc.
report::Names names_of_last_report();

// Whether `tool` has started this program with the filters of system calls that this process has.
// Then they allow starting a process: memlog adds none. Opens files of /proc.
bool is_started_by(const char* tool);

}  // namespace mtrace::life
