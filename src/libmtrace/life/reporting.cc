#include "life/reporting.h"

#include <sys/syscall.h>

#include "base/atomic.h"
#include "base/syscall.h"
#include "life/events.h"
#include "life/exit_hold.h"
#include "life/fork.h"
#include "life/lifecycle.h"
#include "life/naming.h"
#include "life/options.h"
#include "life/triggers.h"
#include "report/mapped_ledger.h"
#include "report/output.h"
#include "report/resolver_process.h"
#include "report/status.h"

namespace mtrace::hook {
namespace {

bool g_exit_reported = false;

// Without getpid a child of vfork cannot be told from its parent, and nothing is reported.
bool is_pid_forbidden() { return sys::g_filtered && !sys::may_call(SYS_getpid, 0, 0, 0, 0, 0, 0); }

}  // namespace

int trigger_report(report::Trigger trigger, const char* label) {
  if (mtrace_status_block.mode != format::Mode::kActive) return 0;
  if (!is_own_process()) {
    if (is_pid_forbidden()) report::status_withheld("getpid", report::output_directory());
    return -1;
  }
  return report::report(trigger, label);
}

Leaving leave_program() {
  // A child of vfork would act for its parent. A fork's child that is not set up yet has nothing to
  // wait for.
  const bool fresh = is_unsettled();
  if (!fresh && !is_own_process()) return {};
  report::status_leaves(!fresh);
  Leaving leaving = {true, !fresh, false};
  if (leaving.settled) {
    leaving.held = report::hold_reports();
    report::finish_resolver(g_options.exit_wait);
    end_events(format::EventsState::kReplaced);
    report::end_ledger(format::LedgerState::kReplaced);
  }
  take_off_trigger();
  return leaving;
}

void stay_in_program(Leaving leaving) {
  if (leaving.announced) report::status_stays();
  if (leaving.settled) report::ledger_goes_on();
  if (leaving.settled) resume_events();
  if (leaving.held) report::release_reports();
}

namespace {
void report_end(bool wanted, const char* label) {
  if (!is_own_process()) {
    if (is_pid_forbidden()) report::end_ledger(format::LedgerState::kUnreported);
    return;
  }
  // A thread that ended the process now would cut short the last report of another thread.
  if (exchange(g_exit_reported, true)) return report::wait_for_reports();
  if (label == nullptr) {
    hold_after_exit();
    hold_exit();  // for the ends that the hooks of exit and main do not see
  }
  if (wanted) report::set_names(names_of_last_report());
  const bool told = !wanted || report::report(report::Trigger::kExit, label) > 0;
  report::stop_resolving();
  end_events(format::EventsState::kEnded);
  report::finish_resolver(g_options.exit_wait);
  using format::LedgerState;
  report::end_ledger(told ? LedgerState::kEnded : LedgerState::kUnreported);
}
}  // namespace

void report_exit() { report_end(g_options.exit_report, nullptr); }
void report_fatal(const char* name) { report_end(true, name); }

void begin_reporting() { g_exit_reported = false; }

}  // namespace mtrace::hook
