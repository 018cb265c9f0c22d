#include "life/report_moments.h"

#include "base/atomic.h"
#include "ledger/peak.h"
#include "life/options.h"
#include "life/reporting.h"
#include "report/memory_use.h"

namespace mtrace::hook {
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

}  // namespace mtrace::hook
