#include "life/memory_limit.h"

#include "base/process.h"
#include "base/table_growth.h"
#include "life/options.h"
#include "record/sampler.h"
#include "report/mapped_ledger.h"
#include "report/own_cost.h"

namespace mtrace::hook {
namespace {

constexpr uint64_t kMean = 512 << 10;  // bytes between two samples
static_assert(ledger::BlockHash::kMostOfSample / kMean > 44, "larger blocks stand for themselves");

// If several threads come here at once, each measures. Runs inside an operation on the tables: that
// puts an exact block, and ends as it began.
void look_at_memory() {
  const uint64_t most = g_options.max_memory;
  const uint64_t memory = report::measure_cost(ledger::g_ledger).memory;
  const sys::TableGrowth& growth = sys::g_table_growth;
  if (memory < most) {
    // The mark is at least a sixteenth further, so that a process which stays close to the limit
    // does not measure at each growth.
    const uint64_t more = most - memory > most / 16 ? most - memory : most / 16;
    return sys::watch_table_growth(load(growth.bytes) + more, look_at_memory);
  }
  sys::watch_table_growth(0, look_at_memory);
  if (samples()) return;
  report::samples_since(sys::real_time());
  start_sampling_late(kMean);
  report::ledger_samples(kMean);
}

}  // namespace

void limit_memory() {
  sys::watch_table_growth(g_options.sample == 0 ? g_options.max_memory : 0, look_at_memory);
}

}  // namespace mtrace::hook
