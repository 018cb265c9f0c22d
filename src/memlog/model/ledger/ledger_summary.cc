#include "model/ledger/ledger_summary.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <vector>

#include "util/text.h"

namespace mtrace::ledger {
namespace {

void look_at_blocks(const LedgerFile& file, LedgerSummary& sum) {
  sum.whole = each_block(file, [&](const LedgerBlock& block) {
    uint64_t& oldest = sum.oldest.try_emplace(block.stack, UINT64_MAX).first->second;
    oldest = std::min(oldest, block.birth);
  });
}

// Computes the peak as report/snapshot.cc does.
void settle_peak(const LedgerFile& file, const LedgerState& state, uint64_t now,
                 LedgerSummary& sum) {
  const format::LedgerHeader& header = file.header();
  sum.peak_when = header.tick_zero + tick_nanoseconds(state.peak_when);
  if (sum.total.live_bytes() > static_cast<int64_t>(sum.peak)) {
    sum.peak = static_cast<uint64_t>(sum.total.live_bytes());
    sum.peak_when = now;
    for (LedgerRow& row : sum.rows) {
      if (row.stack->kind == 0) row.share = static_cast<uint64_t>(row.stack->now.live_bytes());
    }
  }
  sum.peak_when = std::clamp(sum.peak_when, std::min(header.started, now), now);
  if (!state.several_threads) return;
  const uint64_t apart = state.peak > sum.peak ? state.peak - sum.peak : sum.peak - state.peak;
  sum.peak_error = apart + state.kept;
}

}  // namespace

std::string ledger_kind(const format::LedgerHeader& header, uint8_t kind) {
  const std::string name = util::array_text(header.kinds[kind - 1]);
  return util::is_kind(name) ? name : "";
}

LedgerSummary sum_up(const LedgerFile& file, const LedgerState& state, uint64_t now) {
  LedgerSummary sum;
  look_at_blocks(file, sum);
  // If the process was killed while publishing a report, it is unknown what that report contains.
  sum.based = file.header().reporting == 0;
  for (const LedgerStackState& stack : state.stacks) {
    const LedgerCounts change = sum.based ? stack.now - stack.reported : stack.now;
    if (stack.kind == 0) {
      sum.total += stack.now;
      sum.slack += stack.slack;
      sum.change += change;
      sum.peak += stack.share;
    } else {
      sum.kinds[stack.kind - 1] += stack.now;
      if (ledger_kind(file.header(), stack.kind).empty()) continue;
    }
    const bool net = change.live_bytes() != 0 || change.live_blocks() != 0;
    const bool holds = stack.now.live_bytes() != 0 || stack.now.live_blocks() != 0;
    const bool active = change.allocated_blocks != 0 || change.freed_blocks != 0;
    if (net || holds || active || (stack.kind == 0 && stack.share != 0)) {
      sum.rows.push_back({&stack, change, stack.share});
    }
  }
  settle_peak(file, state, now, sum);
  return sum;
}
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

}  // namespace mtrace::ledger
