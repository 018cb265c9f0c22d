// When reports are written: what a trigger, an exec and the end of the process lead to.
#pragma once

#include "report/report.h"

namespace mtrace::hook {

// What a trigger does. Async-signal-safe. See report::report().
int trigger_report(report::Trigger trigger, const char* label);

// What has to be taken back when the process does not become another program.
struct Leaving {
  bool announced;  // in the status block
  bool settled;    // the ledger has come to its end
  bool held;       // reports
};
// Before it does: says so to memlog, waits for names as its end does, and holds reports. A trigger
// that is still pending in the end is taken off: it would reach the next program.
Leaving leave_program();
void stay_in_program(Leaving leaving);

// The report at the end of the process, once, and the wait for its names.
void report_exit();
// The same for the end by a signal, whose name it is labelled with. Async-signal-safe.
void report_fatal(const char* name);

// In a process that has not reported its end yet: a fork's child, or one attached to again.
void begin_reporting();

}  // namespace mtrace::hook
