// The signals that end a program by default, and the report before that.
#pragma once

#include <signal.h>

namespace mtrace::hook {

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

}  // namespace mtrace::hook
