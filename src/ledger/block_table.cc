#include "ledger/block_table.h"

#include "base/syscall.h"

namespace mtrace::ledger {

bool BlockTable::init() { return add_level(0); }

// Makes level `number` the newest, unless it is already. Threads that come at once all map memory,
// because one that waited for another could wait for a thread that does not run; the losers give
// theirs back untouched. False: no memory.
bool BlockTable::add_level(uint32_t number) {
  if (number >= kMaxLevels) return false;
  Slot* known = load_acquire(slots_[number]);
  if (known == nullptr) {
    const uint64_t lines = uint64_t{1} << (kFirstLinesLog2 + number);
    const size_t bytes = lines * kLine * sizeof(Slot) + lines;
    auto* fresh = static_cast<Slot*>(sys::map_memory(bytes));
    if (fresh == nullptr) return false;
    if (!compare_exchange(slots_[number], known, fresh)) sys::unmap_memory(fresh, bytes);
  }
  // The winner may not have come to this line yet.
  if (number > 0) {
    uint32_t before = number - 1;
    compare_exchange(newest_, before, number);
  }
  return true;
}

void BlockTable::extend_reach(const Level& level, uint64_t line, unsigned distance) {
  uint8_t& reach = level.reach[line];
  uint8_t seen = load(reach);
  while (seen < distance && !compare_exchange(reach, seen, static_cast<uint8_t>(distance))) {
  }
  if (distance >= kCrowded && level.number == load(newest_)) add_level(level.number + 1);
}

bool BlockTable::put_slowly(uintptr_t address, const Block& block) {
  // The newest level is full around this block's home. Each round makes the next one, or finds
  // that another thread has.
  for (uint32_t full = load_acquire(newest_); add_level(full + 1); full = load_acquire(newest_)) {
    if (put_in(level(load_acquire(newest_)), address, block)) return true;
  }
  for (uint32_t i = load_acquire(newest_) + 1; i-- > 0;) {
    if (put_in(level(i), address, block)) return true;
  }
  fetch_add<uint64_t>(lost_blocks_, 1);
  return false;
}

}  // namespace mtrace::ledger
