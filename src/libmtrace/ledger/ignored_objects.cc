#include "ledger/ignored_objects.h"

#include "base/atomic.h"
#include "base/table_memory.h"
#include "format/memlog.h"

namespace mtrace::ledger {

using format::kLedgerIgnored;
using format::LedgerIgnored;

bool IgnoredObjects::put(uint64_t address, uint64_t ticks) {
  constexpr uint32_t kMostSteps = 64;
  if (address == 0) return true;
  LedgerIgnored* const objects =
      sys::table_memory(objects_, kLedgerIgnored * sizeof(LedgerIgnored));
  if (objects == nullptr) return false;
  for (uint32_t step = 0; step < kMostSteps; ++step) {
    LedgerIgnored& object = objects[(format::mix64(address) + step) % kLedgerIgnored];
    uint64_t there = load(object.address);
    // Another thread that takes the place meanwhile leaves its address in `there`.
    if (there == 0 && compare_exchange(object.address, there, address)) there = address;
    if (there != address) continue;
    store(object.time, ticks);
    return true;
  }
  return false;
}

}  // namespace mtrace::ledger
