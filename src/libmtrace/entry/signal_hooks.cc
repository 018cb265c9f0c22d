// Hooks of the functions that set the action of a signal.
#include <signal.h>

#include "life/lifecycle.h"
#include "life/triggers.h"
#include "next/export.h"
#include "next/next_functions.h"

using namespace mtrace::hook;

namespace {

constexpr int kSystemV = static_cast<int>(SA_RESETHAND | SA_NODEFER | SA_INTERRUPT);

// Reads `real` after start(), which may have set it.
SetHandler known(const SetHandler& real) {
  start();
  return real;
}

}  // namespace

MTRACE_EXPORT int sigaction(int number, const struct sigaction* action,
                            struct sigaction* old) noexcept {
  start();
  return change_action(number, action, old);
}

MTRACE_EXPORT SignalHandler signal(int number, SignalHandler handler) noexcept {
  return change_handler(known(g_next.signal), number, handler, SA_RESTART);
}
MTRACE_EXPORT SignalHandler bsd_signal(int number, SignalHandler handler) noexcept {
  start();
  return change_handler(g_next.bsd_signal != nullptr ? g_next.bsd_signal : g_next.signal, number,
                        handler, SA_RESTART);
}
MTRACE_EXPORT SignalHandler sysv_signal(int number, SignalHandler handler) noexcept {
  return change_handler(known(g_next.sysv_signal), number, handler, kSystemV);
}
MTRACE_EXPORT SignalHandler __sysv_signal(int number, SignalHandler handler) noexcept {
  return change_handler(known(g_next.sysv_signal_reserved), number, handler, kSystemV);
}
MTRACE_EXPORT SignalHandler sigset(int number, SignalHandler handler) noexcept {
  return change_handler(known(g_next.sigset), number, handler, 0);
}
