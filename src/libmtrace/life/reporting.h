// Writes reports at a trigger and at the end of the process; ends log and ledger before an exec.
#pragma once

#include "report/report.h"

namespace mtrace::hook {

// Writes the report of a trigger; returns as report::report(). Async-signal-safe.
int trigger_report(report::Trigger trigger, const char* label);

// What leave_program() has done, to be undone if the exec fails.
struct Leaving {
  bool announced;  // in the status block
  bool settled;    // names were waited for, and the ledger has ended
  bool held;       // reports are held
};
// Before an exec: announces it to memlog, waits for names as at the end of the process, and holds
// reports. Discards a pending trigger, which would reach the next program. stay_in_program(): after
// an exec that failed.
Leaving leave_program();
void stay_in_program(Leaving leaving);

// Writes the report at the end of the process, once, and waits for its names.
void report_exit();
// Writes the report before a fatal signal, with the signal's name as label. Async-signal-safe.
void report_fatal(const char* name);

// Allows another report at the end: in a fork's child, or when memlog attaches again.
void begin_reporting();

}  // namespace mtrace::hook
