// The signals that write reports, that toggle the recording and, with MTRACE_REPORT_ON_FATAL, that
// end the program, and the functions by which the program could change them.
#pragma once

namespace mtrace::hook {

// Before anything else that takes time: a trigger that comes from now on does not end the program.
// It is remembered, and install_triggers() writes its report. 0: no such signal.
void catch_trigger(int report);
// Installs the handlers where the program has not set or inherited another action. `active`: they
// do their work; otherwise they only keep the signals from ending a program that is not traced.
// 0: no such signal. If both are the same, it writes reports. `fatal`: those that end the program,
// too.
void install_triggers(int report, int toggle, bool active, bool fatal);
// Gives the program back what it sees: the default where a handler is installed. The functions
// then leave the signals alone.
void remove_triggers();

// The trigger, where it writes reports and is on its way to a thread that does not block it. For
// the moment before an exec, after which it would end the next program.
void take_off_trigger();

}  // namespace mtrace::hook
