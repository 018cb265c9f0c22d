#include "life/fatal_signals.h"

#include "base/process.h"
#include "life/lifecycle.h"
#include "life/reporting.h"
#include "next/export.h"
#include "next/next_functions.h"

namespace mtrace::hook {

MTRACE_REALIGN void end_on_signal(int number, siginfo_t* information, void*) {
  if (is_own_process()) {
    for (const FatalSignal& signal : kFatalSignals) {
      if (signal.number == number) report_fatal(signal.name);
    }
    // Fatal signals that came during the report: without the report the program would have been
    // gone.
    for (const FatalSignal& signal : kFatalSignals) sys::discard_signal(signal.number);
  }
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  g_next.sigaction(number, &standard, nullptr);
  sys::send_again(number, information);
}

}  // namespace mtrace::hook
