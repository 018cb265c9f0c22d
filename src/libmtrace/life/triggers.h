// The signals that write reports, toggle the recording and, with MTRACE_REPORT_ON_FATAL, end the
// program, and the functions by which the program could change them.
#pragma once

#include <signal.h>

#include <cstdint>

#include "next/next_functions.h"

namespace mtrace::life {

// Catches the trigger of reports (0: none), before anything that takes time: a trigger that comes
// from now on does not end the program, and install_triggers() writes its report.
void catch_trigger(int report);
// Installs handlers for the signals `report` and `toggle` (0: none) where the program has not set
// or inherited another action. If both are the same, it writes reports. `active`: the handlers
// work; otherwise they only keep the signals from ending a program that is not traced. `fatal`:
// also handles the signals that end the program.
void install_triggers(int report, int toggle, bool active, bool fatal);
// Sets the default where one of our handlers is installed, as the program sees it. The functions
// below then leave the signals alone.
void remove_triggers();

// Which of the program's threads may return from a signal handler, a system call.
enum class Returns : uint32_t { kAll, kSome, kNone };
// Before a filter of system calls is added, under which perhaps no handler returns. `all` (the
// filter is for all threads): sets the triggers to be ignored, and the fatal signals to their
// default. Otherwise only the status block is changed, so that memlog sends no trigger. Returns
// what was before, for take_up_handlers() if the filter was not added.
Returns give_up_handlers(bool all);
void take_up_handlers(Returns before);
// Whether triggers are ignored since give_up_handlers().
bool ignores_triggers();
// Sets these triggers to the default (`on`), since an exec keeps ignored signals ignored, or
// ignores them again. A child of vfork has actions of its own.
void let_triggers_through(bool on);

// Discards a pending trigger that writes reports, unless the calling thread blocks it. Call it
// before an exec, after which the trigger would end the next program.
void take_off_trigger();

// sigaction(2) as the program sees it: without this library's handlers, which read as the default
// and stand in for it.
int change_action(int number, const struct sigaction* action, struct sigaction* old);
// signal() and its variants as the program sees them. `set`: the real function, called for handlers
// of the program's own. `flags`: those that `set` gives to the default.
using SetHandler = next::SignalHandler (*)(int, next::SignalHandler);
next::SignalHandler change_handler(SetHandler set, int number, next::SignalHandler handler,
                                   int flags);

// ---- The signals that end a program by default, and the report before that.

struct FatalSignal {
  int number;
  const char* name;
};
// The signals that are meant to end a process. The real-time signals, SIGUSR1, SIGUSR2, SIGPIPE and
// timers do so by default, too, but are for programs that handle or ignore them.
inline constexpr FatalSignal kFatalSignals[] = {
    {SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"}, {SIGILL, "SIGILL"},
    {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
    {SIGSEGV, "SIGSEGV"}, {SIGTERM, "SIGTERM"}, {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"},
    {SIGSYS, "SIGSYS"},
};

// The handler, for SA_SIGINFO and with all signals blocked. Writes the report, restores the default
// action and sends the signal again with its siginfo. The signal takes effect at the interrupted
// instruction, so status and core file are what they would have been. No report in a vfork child.
void end_on_signal(int number, siginfo_t* information, void* context);

}  // namespace mtrace::life
