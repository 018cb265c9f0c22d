#include "ledger/block_hash.h"

#include "base/table_memory.h"

namespace mtrace::ledger {

bool BlockHash::init() {
  for (uint32_t number = 0; number < kMaxLevels; ++number) {
    const unsigned log2 = kFirstLinesLog2 + number;
    levels_[number].mask = (uint64_t{1} << log2) - 1;
    levels_[number].shift = 64 - log2;
    levels_[number].number = number;
  }
  return add_level(0);
}

// Makes level `number` the newest, unless it is already. Without a ledger file, threads that come
// at once all map memory: to wait could mean to wait for a stopped thread. False: no memory.
bool BlockHash::add_level(uint32_t number) {
  if (number >= kMaxLevels) return false;
  Level& level = levels_[number];
  // Lines of this level and all before it together.
  const uint64_t lines = 2 * level.lines() - (uint64_t{1} << kFirstLinesLog2);
  if (number != 0 && most_ != 0 && lines * kLine > most_) return false;
  const size_t bytes = level.lines() * kLine * sizeof(Slot) + level.lines();
  Slot* slots = sys::table_memory(level.slots_made, bytes);
  if (slots == nullptr) return false;
  // Every thread writes the same value.
  store(level.reach_made, reinterpret_cast<uint8_t*>(slots + level.lines() * kLine));
  // The thread that made the level may not have published it yet.
  if (number > 0) {
    uint32_t before = number - 1;
    compare_exchange(newest_, before, number);
  }
  return true;
}

// Removes blocks with the address of `put` up to `distance` lines from its home: they were freed
// past the hooks. No other thread of the program uses the address meanwhile. False: there are none.
bool BlockHash::drop_older(const Level& level, uint64_t line, const Slot& put, unsigned distance) {
  const uint64_t wanted = load(put.key) & kAddressMask;
  bool dropped = false;
  for (unsigned d = 0; d <= distance; ++d) {
    Slot* slots = level.line(line + d);
    for (unsigned here = places(slots, wanted, kAddressMask); here != 0; here &= here - 1) {
      Slot* slot = slots + std::countr_zero(here);
      if (slot == &put) continue;
      const Slot seen = {load(slot->key), load(slot->value)};
      // A report may be dropping the block at this moment.
      uint64_t key = seen.key;
      if (!compare_exchange(slot->key, key, kReserved)) continue;
      const Block older = unpack(seen);
      release(slot);
      missed_free(address_of(seen), older);
      dropped = true;
    }
  }
  return dropped;
}

void BlockHash::extend_reach(const Level& level, uint64_t line, const Slot& put,
                             unsigned distance) {
  uint8_t& reach = level.reach(line);
  uint8_t seen = load(reach);
  while (seen < distance && !compare_exchange(reach, seen, static_cast<uint8_t>(distance))) {
  }
  if (distance < kCrowded || level.number != load(newest_)) return;
  // A program that frees past the hooks must not make the table grow for ever.
  if (drop_older(level, line, put, distance)) return;
  if (fetch_add(crowded_[level.number], 1u) >= level.lines() / kMostCrowded)
    add_level(level.number + 1);
}

void BlockHash::forget_all() {
  for (uint32_t i = 0; i <= newest_; ++i) {
    const Level& at = levels_[i];
    for (uint64_t s = 0; s < at.lines() * kLine; ++s) {
      if (at.slots()[s].key != 0) release(&at.slots()[s]);
    }
  }
  lost_blocks_ = 0;
}

uint64_t BlockHash::large_size(uint64_t index) const {
  const uint64_t* size = large_.find(static_cast<uint32_t>(index));
  return size != nullptr ? load(*size) : 0;
}

void BlockHash::forget_large(const Slot& slot) {
  const uint64_t field = size_field(slot.value);
  if (field >= kSample) return;
  uint64_t* size = large_.find(static_cast<uint32_t>(field - kLarge));
  if (size != nullptr) store(*size, uint64_t{0});
}

// Puts a block that does not fit the packed form: one of 512 MiB or more, whose size goes to large_,
// or one at an address that no common allocator returns, which counts as lost.
bool BlockHash::put_unusual(const Place& place, const Block& block) {
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

bool BlockHash::put_sample(uintptr_t address, const Block& block) {
  if ((address & ~(kAddressMask << 3)) != 0) return count_lost(), false;
  const Place place = expect(address);
  const Slot packed = pack(address, {kSample + block.size, block.stack, block.birth});
  return put_at(*place.level, place.home, packed) || put_slowly(address, packed);
}

bool BlockHash::put_in(const Level& level, uintptr_t address, const Slot& packed) {
  return put_at(level, home(level, address), packed);
}

bool BlockHash::put_slowly(uintptr_t address, const Slot& packed) {
  // The newest level is full around this block's home. Each round makes the next level, or finds
  // one that another thread has made.
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
