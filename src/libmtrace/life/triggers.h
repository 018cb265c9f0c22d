// The signals that write reports, that toggle the recording and, with MTRACE_REPORT_ON_FATAL, that
// end the program, and the functions by which the program could change them.
#pragma once

#include <signal.h>

#include "next/next_functions.h"

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

// For a filter of system calls that is about to be added and under which no handler returns: the
// signals of those installed here are ignored from now on, or, where they end the program, end it.
// `all`: for all threads; otherwise only memlog is told that it must send none. False: that was so
// before.
bool give_up_handlers(bool all);
void take_up_handlers();  // the filter was not added

// The trigger, where it writes reports and is on its way to a thread that does not block it. For
// the moment before an exec, after which it would end the next program.
void take_off_trigger();

// sigaction(2) as the program sees it: without this library's handlers, which read as the default
// and stand in for it.
int change_action(int number, const struct sigaction* action, struct sigaction* old);
// The same for signal() and its kin: `set` does the real thing for a handler that is the program's
// own; `flags` are those with which it sets the default.
using SetHandler = SignalHandler (*)(int, SignalHandler);
SignalHandler change_handler(SetHandler set, int number, SignalHandler handler, int flags);

}  // namespace mtrace::hook
