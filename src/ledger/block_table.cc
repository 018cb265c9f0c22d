#include "ledger/block_table.h"

#include "base/syscall.h"

namespace mtrace::ledger {

bool BlockTable::init() { return add_level(0); }

// Makes level `number` if nobody has and nobody is about to. A thread that comes second goes on
// with the levels there are. False: no memory.
bool BlockTable::add_level(uint32_t number) {
  if (number >= kMaxLevels) return false;
  uint32_t expected = number;
  if (!compare_exchange(growing_, expected, number + 1)) return true;
  const unsigned log2 = kFirstLinesLog2 + number;
  const uint64_t lines = uint64_t{1} << log2;
  const size_t slot_bytes = lines * kLine * sizeof(Slot);
  void* memory = sys::map_memory(slot_bytes + lines);
  if (memory == nullptr) {
    store_release(growing_, number);
    return false;
  }
  levels_[number] = {static_cast<Slot*>(memory), static_cast<uint8_t*>(memory) + slot_bytes, lines,
                     64 - log2};
  store_release(newest_, number);
  return true;
}

void BlockTable::extend_reach(const Level& level, uint64_t line, unsigned distance) {
  uint8_t& reach = level.reach[line];
  uint8_t seen = load(reach);
  while (seen < distance && !compare_exchange(reach, seen, static_cast<uint8_t>(distance))) {
  }
  if (distance >= kCrowded && &level == &levels_[load(newest_)]) add_level(load(newest_) + 1);
}

bool BlockTable::put_slowly(uintptr_t address, const Block& block) {
  add_level(load(newest_) + 1);
  for (uint32_t i = load_acquire(newest_) + 1; i-- > 0;) {
    if (put_in(levels_[i], address, block)) return true;
  }
  fetch_add<uint64_t>(lost_blocks_, 1);
  return false;
}

}  // namespace mtrace::ledger
