#include "live/ledger_totals.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <vector>

namespace mtrace::live {
namespace {

// As in ledger_memlog.cc: the first are malloc and its kin, with new; then come free and delete.
constexpr unsigned kAllocationCalls = 11;

}  // namespace

std::optional<LedgerTotals> read_totals(const LedgerFile& file) {
  const format::LedgerRoots& roots = file.header().roots;
  LedgerTotals totals;
  uint32_t used = 0;
  if (::pread(file.descriptor(), &totals.state, sizeof totals.state,
              offsetof(format::LedgerHeader, state)) != sizeof totals.state ||
      !file.read(roots.threads_used, used)) {
    return std::nullopt;
  }
  used = std::clamp(used, 1u, format::kLedgerThreads - 1);
  std::vector<format::LedgerThread> threads(used + size_t{1});
  if (!file.read(roots.threads, threads.data(), threads.size() * sizeof threads[0])) {
    return std::nullopt;
  }
  for (const format::LedgerThread& thread : threads) {
    totals.live_bytes += thread.live_bytes;
    totals.live_blocks += thread.live_blocks;
    for (unsigned call = 0; call < kAllocationCalls; ++call) {
      totals.allocations += thread.calls[call];
    }
    totals.calls = std::accumulate(std::begin(thread.calls), std::end(thread.calls), totals.calls);
  }
  // Between the looks at two threads a block may have moved from one to the other.
  if (static_cast<int64_t>(totals.live_bytes) < 0) totals.live_bytes = 0;
  if (static_cast<int64_t>(totals.live_blocks) < 0) totals.live_blocks = 0;
  return totals;
}

}  // namespace mtrace::live
