#include "life/reporting.h"

#include <sys/syscall.h>

#include <cstring>

#include "base/atomic.h"
#include "base/file.h"
#include "base/filters.h"
#include "base/process.h"
#include "base/syscall.h"
#include "base/writer.h"
#include "ledger/peak.h"
#include "life/environment.h"
#include "life/fork.h"
#include "life/lifecycle.h"
#include "life/options.h"
#include "life/triggers.h"
#include "report/host.h"
#include "report/memory_use.h"
#include "report/output.h"
#include "report/resolver_process.h"
#include "report/status.h"

namespace mtrace::life {

namespace {

bool g_exit_reported = false;

}  // namespace

int trigger_report(report::Trigger trigger, const char* label) {
  if (mtrace_status_block.mode != format::Mode::kActive) return 0;
  if (base::makes_no_calls()) {
    report::ledger_withheld(!is_new_child());
    return -1;
  }
  return is_own_process() ? report::report(trigger, label) : -1;
}

ExecPreparation prepare_exec() {
  // A child of vfork would act for its parent. A fork's child that is not set up yet has nothing to
  // wait for.
  const bool fresh = is_new_child();
  if (!fresh && !is_own_process()) return {};
  report::status_leaves(!fresh);
  ExecPreparation preparation = {true, !fresh, false};
  if (preparation.ended) {
    preparation.held = report::hold_reports();
    report::finish_resolver(g_options.exit_wait);
    end_events(format::EventsState::kReplaced);
    report::end_ledger(format::LedgerState::kReplaced);
  }
  take_off_trigger();
  return preparation;
}

void undo_exec(ExecPreparation preparation) {
  if (preparation.announced) report::status_stays();
  if (preparation.ended) report::ledger_goes_on();
  if (preparation.ended) resume_events();
  if (preparation.held) report::release_reports();
}

namespace {
void report_end(bool wanted, const char* label) {
  // Without getpid(2) a child of vfork looks like its parent.
  if (base::makes_no_calls()) {
    const bool mine = !is_new_child();
    if (wanted) report::ledger_withheld(mine);
    if (mine) report::end_ledger(format::LedgerState::kUnreported);
    return;
  }
  if (!is_own_process()) return;
  // A thread that ended the process now would cut short the last report of another thread.
  if (exchange(g_exit_reported, true)) return report::wait_for_reports();
  if (label == nullptr) {
    hold_after_exit();
    hold_exit();  // for the ends that the hooks of exit and main do not see
  }
  const bool reported =
      !wanted || report::report(report::Trigger::kExit, label, names_of_last_report()) > 0;
  report::stop_resolving();
  end_events(format::EventsState::kEnded);
  report::finish_resolver(g_options.exit_wait);
  using format::LedgerState;
  report::end_ledger(reported ? LedgerState::kEnded : LedgerState::kUnreported);
}
}  // namespace

void report_exit() { report_end(g_options.exit_report, nullptr); }
void report_fatal(const char* name) { report_end(true, name); }

void begin_reporting() { g_exit_reported = false; }

namespace {

using Kind = ReportMoment::Kind;

constexpr uint64_t kLeastStep = 1 << 20;

ReportMoment g_moment = {};
uint64_t g_limit = 0;  // resident bytes at which to report; 0: none

uint64_t at_least(uint64_t step) { return step > kLeastStep ? step : kLeastStep; }

// The live bytes from which the program is worth the next look, when it has `live`.
uint64_t next_mark(uint64_t live, uint64_t resident) {
  switch (g_moment.kind) {
    case Kind::kPeak:
      return live + at_least(live / 8);
    case Kind::kGrowth:
      return live + g_moment.bytes;
    default:
      // Resident memory can grow without live bytes, so the way is gone in steps.
      return live + at_least(g_limit > resident ? (g_limit - resident) / 4 : 0);
  }
}

// Called from inside an operation, where live bytes pass the mark and so are at a new peak.
void look_at_live(uint64_t live) {
  uint64_t mark = load(ledger::g_peak_watch.mark);
  const bool by_resident = g_moment.kind == Kind::kResident;
  const uint64_t resident = by_resident ? report::memory_use().resident : 0;
  // The loser of a race goes on: the winner writes the report.
  if (live < mark ||
      !compare_exchange(ledger::g_peak_watch.mark, mark, next_mark(live, resident))) {
    return;
  }
  if (by_resident) {
    const uint64_t limit = load(g_limit);
    if (resident < limit) return;
    store(g_limit, resident + at_least(limit / 16));
  }
  constexpr report::Trigger kTriggers[] = {report::Trigger::kPeak, report::Trigger::kPeak,
                                           report::Trigger::kGrowth, report::Trigger::kResident};
  trigger_report(kTriggers[static_cast<unsigned>(g_moment.kind)], nullptr);
}

}  // namespace

void watch_for_moments() {
  g_moment = moment_of(g_options.report_at);
  uint64_t first = 0;
  if (g_moment.kind == Kind::kResident) {
    g_limit =
        g_moment.percent == 0 ? g_moment.bytes : report::memory_limit("") / 100 * g_moment.percent;
    first = g_limit == 0 ? 0 : 1;
  } else if (g_moment.kind != Kind::kNone) {
    first = next_mark(0, 0);
  }
  ledger::g_peak_watch = {first, look_at_live};
}

namespace {

constexpr uint64_t kMillisecond = 1'000'000;

// With patterns in MTRACE_FOLLOW, the parent may have the library and not count.
bool has_traced_parent(uint64_t parent) {
  if (parent == 0) return false;
  if (parent == report::g_host.parent) return true;
  return !is_late() && strcmp(g_options.follow, "1") == 0 && is_traced(parent);
}

}  // namespace

bool is_started_by(const char* tool) {
  const uint64_t parent = relatives().parent;
  if (tool == nullptr || parent == 0) return false;
  char path[32];
  Writer(path, sizeof path).text("/proc/").number(parent).text("/exe").finish();
  const base::FileIdentity program = base::file_identity(path);
  if (program == base::FileIdentity{} || !(program == base::file_identity(tool))) return false;
  Writer(path, sizeof path).text("/proc/").number(parent).text("/status").finish();
  return base::seccomp_filters(path) == base::inherited_filters();
}

report::Names names_of_last_report() {
  if (g_options.exit_wait == 0) return report::Names::kLeft;  // names would not come in time
  const uint64_t limit = g_options.name_after_ms * kMillisecond;
  if (limit == 0) return report::Names::kOwn;
  const Relatives known = relatives();
  const uint64_t lived = base::monotonic_time() - report::g_host.started_monotonic;
  if (lived < limit && has_traced_parent(known.parent)) return report::Names::kLeft;
  return has_forked() || known.children_faults != 0 ? report::Names::kTree : report::Names::kOwn;
}

}  // namespace mtrace::life
