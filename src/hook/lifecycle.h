// The life of the library in a process: start, fork, end.
#pragma once

#include <cstddef>

#include "report/report.h"

namespace mtrace::hook {

// Makes the library ready, once: finds the real functions, reads the options, decides whether
// this program is traced. From then on allocations are counted. May run before any constructor.
// False while that is not possible yet.
bool start();

// True in a process whose allocations these tables hold: not in a vfork child, which shares its
// parent's memory, and only after a fork's child has been set up. Async-signal-safe.
bool is_own_process();

// Stops the recording of new allocations, or goes on with it. True: it was on before; false also
// in a program that is not traced. Thread-safe; async-signal-safe.
bool set_recording(bool on);
void toggle_recording();

// What a trigger does. Async-signal-safe. See report::report().
int trigger_report(report::Trigger trigger, const char* label);

// Before the process becomes another program: waits for names as its end does, and holds reports.
// True: stay_in_program() has to follow when it does not. False: nothing was done.
bool leave_program();
void stay_in_program();

// The report at the end of the process, once, and the wait for its names.
void report_exit();
// The same for the end by a signal, whose name it is labelled with. Async-signal-safe.
void report_fatal(const char* name);

}  // namespace mtrace::hook
