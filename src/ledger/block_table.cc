#include "ledger/block_table.h"

#include "base/syscall.h"

namespace mtrace::ledger {

bool BlockTable::init() { return add_level(0); }

// Makes level `number` the newest, unless it is already. Threads that come at once all map memory,
// because one that waited for another could wait for a thread that does not run; the losers give
// theirs back untouched. False: no memory.
bool BlockTable::add_level(uint32_t number) {
  if (number >= kMaxLevels) return false;
  Level& level = levels_[number];
  const unsigned log2 = kFirstLinesLog2 + number;
  const uint64_t lines = uint64_t{1} << log2;
  // All levels up to this one have nearly twice as many lines as it.
  const uint64_t places = (2 * lines - (uint64_t{1} << kFirstLinesLog2)) * kLine;
  if (number != 0 && most_ != 0 && places > most_) return false;
  Slot* slots = load_acquire(level.slots);
  if (slots == nullptr) {
    const size_t bytes = lines * kLine * sizeof(Slot) + lines;
    auto* fresh = static_cast<Slot*>(sys::map_memory(bytes));
    if (fresh == nullptr) return false;
    if (compare_exchange(level.slots, slots, fresh)) {
      slots = fresh;
    } else {
      sys::unmap_memory(fresh, bytes);
    }
  }
  // Whoever comes writes the same.
  store(level.reach, reinterpret_cast<uint8_t*>(slots + lines * kLine));
  store(level.mask, lines - 1);
  store(level.shift, 64 - log2);
  store(level.number, number);
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
  if (distance < kCrowded || level.number != load(newest_)) return;
  if (fetch_add(crowded_[level.number], 1u) >= level.lines() / kMostCrowded)
    add_level(level.number + 1);
}

uint64_t BlockTable::large_size(uint64_t index) const {
  const uint64_t* size = large_.find(static_cast<uint32_t>(index));
  return size != nullptr ? load(*size) : 0;
}

void BlockTable::forget_large(const Slot& slot) {
  uint64_t* size = large_.find(static_cast<uint32_t>(size_field(slot.value) - kLarge));
  if (size != nullptr) store(*size, uint64_t{0});
}

// A block that does not fit the packed form as it is: of 1 GiB or more, or at an address that no
// common allocator hands out.
bool BlockTable::put_unusual(const Place& place, const Block& block) {
  const bool usual_address = (place.address & ~(kAddressMask << 3)) == 0;
  for (uint32_t index = 0; usual_address && index < kMostLarge; ++index) {
    uint64_t* size = large_.find_or_create(index);
    if (size == nullptr) break;
    uint64_t expected = 0;
    if (load(*size) != 0 || !compare_exchange(*size, expected, block.size)) continue;
    const Slot packed = pack(place.address, {kLarge + index, block.stack, block.birth});
    if (put_at(*place.level, place.home, packed) || put_slowly(place.address, packed)) return true;
    store(*size, uint64_t{0});
    return false;
  }
  fetch_add<uint64_t>(lost_blocks_, 1);
  return false;
}

bool BlockTable::put_in(const Level& level, uintptr_t address, const Slot& packed) {
  return put_at(level, home(level, address), packed);
}

bool BlockTable::put_slowly(uintptr_t address, const Slot& packed) {
  // The newest level is full around this block's home. Each round makes the next one, or finds
  // that another thread has.
  for (uint32_t full = load_acquire(newest_); add_level(full + 1); full = load_acquire(newest_)) {
    if (put_in(levels_[load_acquire(newest_)], address, packed)) return true;
  }
  for (uint32_t i = load_acquire(newest_) + 1; i-- > 0;) {
    if (put_in(levels_[i], address, packed)) return true;
  }
  fetch_add<uint64_t>(lost_blocks_, 1);
  return false;
}

}  // namespace mtrace::ledger
