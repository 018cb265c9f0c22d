#include "ledger/resource_table.h"

#include "base/syscall.h"
#include "base/table_file.h"

namespace mtrace::ledger {

constinit ResourceTable g_resources = {};

// Makes level `number` the newest, unless there is a newer one. Threads that come at once all map
// memory; the losers give theirs back untouched. False: no memory.
bool ResourceTable::add_level(uint32_t number) {
  if (number >= kMaxLevels) return false;
  Slot* known = load_acquire(slots_[number]);
  if (known == nullptr) {
    const size_t bytes = level_bytes(number);
    auto* fresh = static_cast<Slot*>(sys::map_memory(bytes));
    if (fresh == nullptr) return false;
    if (!compare_exchange(slots_[number], known, fresh)) sys::unmap_memory(fresh, bytes);
  }
  // The thread that made the level may not have published it yet.
  if (number > 0) {
    uint32_t before = number - 1;
    compare_exchange(newest_, before, number);
  }
  return true;
}

void ResourceTable::clear() {
  for (uint32_t i = 0; i < kMaxLevels; ++i) {
    if (slots_[i] != nullptr) sys::unmap_memory(slots_[i], level_bytes(i));
    slots_[i] = nullptr;
  }
  newest_ = 0;
  lost_ = 0;
}

void ResourceTable::extend_reach(const Level& level, uint64_t line, unsigned distance) {
  uint8_t& reach = level.reach[line];
  uint8_t seen = load(reach);
  while (seen < distance && !compare_exchange(reach, seen, static_cast<uint8_t>(distance))) {
  }
  if (distance >= kCrowded && level.number == load(newest_)) add_level(level.number + 1);
}

// Returns the state that was published; 0: no free slot near its home.
uint64_t ResourceTable::insert_in(const Level& level, unsigned kind, uint64_t id,
                                  const Resource& resource, Slot** slot) {
  if (level.slots == nullptr) return 0;
  const uint64_t first = home(level, kind, id);
  for (unsigned distance = 0; distance <= kMostReach; ++distance) {
    Slot* line = level.slots + ((first + distance) & (level.lines - 1)) * kLine;
    for (unsigned s = 0; s < kLine; ++s) {
      uint64_t state = load(line[s].state);
      if ((state & kStatusMask) != kFree) continue;
      uint64_t busy = version_of(state) | kBusy;
      if (!compare_exchange(line[s].state, state, busy)) continue;
      store(line[s].id, id);
      store(line[s].size, resource.size);
      store(line[s].stack, resource.stack);
      // Before the slot is live: a search with too short a reach does not find it.
      if (distance != 0) extend_reach(level, first, distance);
      const uint64_t live = version_of(state) | kLive | kind << 2;
      // A locked instruction, so that the search for other slots of the id comes after it. Fails
      // only when repair() in a fork's child has freed the slot meanwhile.
      if (!compare_exchange(line[s].state, busy, live)) return 0;
      *slot = line + s;
      return live;
    }
  }
  return 0;
}

uint64_t ResourceTable::insert(unsigned kind, uint64_t id, const Resource& resource, Slot** slot) {
  add_level(0);  // nothing to do but the first time
  uint64_t state = insert_in(level(load_acquire(newest_)), kind, id, resource, slot);
  // Each round makes the next level, or finds one that another thread has made.
  for (uint32_t full = load_acquire(newest_); state == 0 && add_level(full + 1);
       full = load_acquire(newest_)) {
    state = insert_in(level(load_acquire(newest_)), kind, id, resource, slot);
  }
  for (uint32_t i = load_acquire(newest_) + 1; state == 0 && i-- > 0;) {
    state = insert_in(level(i), kind, id, resource, slot);
  }
  if (state == 0) {
    fetch_add<uint64_t>(lost_, 1);
    sys::count_loss(&format::LedgerHeader::lost_resources);
  }
  return state;
}

}  // namespace mtrace::ledger
