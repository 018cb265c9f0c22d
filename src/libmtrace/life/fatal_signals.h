// The signals that end a program which has not said otherwise, and the report before that.
#pragma once

#include <signal.h>

namespace mtrace::hook {

struct FatalSignal {
  int number;
  const char* name;
};
// All whose default action is the end of the process and that have a use as such; the real-time
// signals, SIGUSR1, SIGUSR2, SIGPIPE and timers are for programs that handle or ignore them.
inline constexpr FatalSignal kFatalSignals[] = {
    {SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"}, {SIGILL, "SIGILL"},
    {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
    {SIGSEGV, "SIGSEGV"}, {SIGTERM, "SIGTERM"}, {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"},
    {SIGSYS, "SIGSYS"},
};

// The handler, for SA_SIGINFO and with all signals blocked: writes the report and has the signal
// come again, with the default action and what was told about it. It then takes effect where it
// was, so status and core file are what they would have been. In a vfork child it only does the
// latter.
void end_on_signal(int number, siginfo_t* information, void* context);

}  // namespace mtrace::hook
