// Who fills in the names of a process's last report: in a tree of short processes one process does
// it for all, because starting the resolver costs more than such a process.
#pragma once

#include "report/report.h"

namespace mtrace::hook {

// Decides for the report at the end, which is written next. A process that has lived for less than
// MTRACE_NAME_AFTER_MS and whose parent is traced leaves names to its ancestors; any other fills in
// its own, and those of the reports that its descendants have left. Async-signal-safe; opens files
// of /proc.
report::Names names_of_last_report();

// Whether `tool` has started this program with the filters of system calls that this process has.
// Then they allow starting a process: memlog adds none. Opens files of /proc.
bool is_started_by(const char* tool);

}  // namespace mtrace::hook
