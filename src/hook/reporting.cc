#include "hook/reporting.h"

#include "base/atomic.h"
#include "hook/fork.h"
#include "hook/lifecycle.h"
#include "hook/naming.h"
#include "hook/options.h"
#include "report/mapped_ledger.h"
#include "report/resolver.h"
#include "report/status.h"

namespace mtrace::hook {
namespace {

bool g_exit_reported = false;

}  // namespace

int trigger_report(report::Trigger trigger, const char* label) {
  if (mtrace_status_block.mode != format::Mode::kActive) return 0;
  if (!is_own_process()) return -1;
  return report::report(trigger, label);
}

bool leave_program() {
  // A fork's child that has done nothing yet has nothing to wait for.
  if (is_unsettled() || !is_own_process()) return false;
  const bool held = report::hold_reports();
  report::finish_resolver(g_options.exit_wait);
  report::end_ledger(format::LedgerState::kReplaced);
  return held;
}

void stay_in_program() {
  report::ledger_goes_on();
  report::release_reports();
}

namespace {
void report_end(bool wanted, const char* label) {
  if (!is_own_process()) return;
  // A thread that ends the process while another one is at its last report would cut that short.
  if (exchange(g_exit_reported, true)) return report::wait_for_reports();
  if (wanted) report::set_names(names_of_last_report());
  const bool told = !wanted || report::report(report::Trigger::kExit, label) > 0;
  report::finish_resolver(g_options.exit_wait);
  if (told) report::end_ledger(format::LedgerState::kEnded);
}
}  // namespace

void report_exit() { report_end(g_options.exit_report, nullptr); }
void report_fatal(const char* name) { report_end(true, name); }

void begin_reporting() { g_exit_reported = false; }

}  // namespace mtrace::hook
