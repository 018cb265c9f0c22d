#include "view/heap/live_time.h"

#include <algorithm>

namespace mtrace::analyze {
namespace {

constexpr uint32_t kMostPacked = (1u << 27) - 1;  // ledger/ticks.h

}  // namespace

LiveTime live_time(const ledger::LedgerStackState* before, const ledger::LedgerStackState& after,
                   bool whole) {
  const ledger::LedgerCounts change = before != nullptr ? after.now - before->now : after.now;
  LiveTime time;
  time.frees = change.freed_blocks;
  if (time.frees == 0) return time;
  time.mean = change.lifetime / time.frees;
  // As the library keeps them, both only grow.
  const bool good = whole && after.shortest != 0 && after.shortest <= kMostPacked + 1 &&
                    after.longest != 0 && after.longest <= kMostPacked + 1;
  if (!good) return time;
  const uint32_t shortest = before != nullptr ? before->shortest : 0;
  const uint32_t longest = before != nullptr ? before->longest : 0;
  time.least = {ledger::unpack_ticks(kMostPacked + 1 - after.shortest), after.shortest > shortest};
  time.most = {ledger::unpack_ticks(after.longest - 1), after.longest > longest};
  // Of a free that was half counted at either look.
  time.mean = std::max(std::min(time.mean, time.most->ticks), time.least->ticks);
  return time;
}

void add(LiveTime& sum, const LiveTime& more) {
  if (more.frees == 0) return;
  if (sum.frees == 0) {
    sum = more;
    return;
  }
  const auto total = static_cast<unsigned __int128>(sum.mean) * sum.frees +
                     static_cast<unsigned __int128>(more.mean) * more.frees;
  sum.frees += more.frees;
  sum.mean = static_cast<uint64_t>(total / sum.frees);
  if (!sum.least || !more.least) {
    sum.least.reset();
  } else if (more.least->ticks < sum.least->ticks) {
    sum.least = more.least;
  }
  if (!sum.most || !more.most) {
    sum.most.reset();
  } else if (more.most->ticks > sum.most->ticks) {
    sum.most = more.most;
  }
}

}  // namespace mtrace::analyze
