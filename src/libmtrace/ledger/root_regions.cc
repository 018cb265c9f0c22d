#include "ledger/root_regions.h"

#include "base/atomic.h"

namespace mtrace::ledger {
namespace {

constexpr uint64_t kFree = 0;
constexpr uint64_t kChanging = 1;  // other threads skip the entry

}  // namespace

using format::LedgerRootRegion;

constinit RootRegions g_root_regions = {};

bool RootRegions::put(uint64_t address, uint64_t size) {
  if (address <= kChanging || size == 0) return true;
  for (LedgerRootRegion& region : regions_) {
    uint64_t there = kFree;
    if (load(region.address) != kFree) continue;
    // Another thread may have taken the place meanwhile: then try the next.
    if (!compare_exchange(region.address, there, kChanging)) continue;
    store(region.size, size);
    store_release(region.address, address);
    return true;
  }
  return false;
}

void RootRegions::take(uint64_t address, uint64_t size) {
  if (address <= kChanging || size == 0) return;
  for (LedgerRootRegion& region : regions_) {
    uint64_t there = address;
    if (load_acquire(region.address) != address || load(region.size) != size) continue;
    if (!compare_exchange(region.address, there, kChanging)) continue;
    // The place may have gone to a region of another size at this address before it was taken.
    const bool same = load(region.size) == size;
    store_release(region.address, same ? kFree : address);
    if (same) return;
  }
}

}  // namespace mtrace::ledger
