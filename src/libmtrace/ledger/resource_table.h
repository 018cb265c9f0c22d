// Resources that the program records itself: (kind, id) -> size and stack. Lock-free.
//
// Unlike a block, an id has no owner that the library could rely on: two threads may record or
// release the same id at once. So each slot has a state word with a version that no two tenants
// share. The thread that changes Live to Busy by compare-and-swap alone owns what the slot held; a
// loser searches on. After a put has published its slot, it searches again for another slot of the
// same id: of such a pair the slot later in the order of search goes. Of two puts that race, one
// must see the pair, because each publishes with a full barrier before it searches.
//
// Open addressing in lines of four slots, levels as in block_hash.h: a crowded level gets a
// successor of twice its size, nothing is moved, a slot is used again when its tenant has gone.
//
// put and take are thread-safe and async-signal-safe. A table of zeros is ready for use.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "format/memlog.h"

namespace mtrace::ledger {

struct Resource {
  uint64_t size;   // bytes
  uint32_t stack;  // index in the stack table
};

class ResourceTable {
 public:
  static constexpr unsigned kMostKinds = 30;  // kinds are 1 to kMostKinds

  // Makes the resource live and calls ended(resource) for each of the same kind and id that this
  // put ends: the one that was live before or, if another thread puts at the same time, one of the
  // two, which may be the new one. False: no room, and lost() has grown; the one that was live
  // before has ended all the same.
  template <typename Ended>
  bool put(unsigned kind, uint64_t id, const Resource& resource, Ended&& ended) {
    Resource old;
    // More than one round only if other threads go on putting the same id.
    for (int i = 0; i < kMostRounds && take(kind, id, &old); ++i) ended(old);
    Slot* own = nullptr;
    const uint64_t published = insert(kind, id, resource, &own);
    if (published == 0) return false;
    bool passed = false;  // the search has passed our own slot
    search(kind, id, [&](Slot& slot, uint64_t state) {
      if (&slot == own) {
        passed = true;
        return false;
      }
      if (!passed) {
        if (take_from(*own, published, &old)) ended(old);
        return true;
      }
      // Only while ours is live: otherwise the other one may be its rightful successor.
      if (load_acquire(own->state) == published && take_from(slot, state, &old)) ended(old);
      return false;
    });
    return true;
  }

  // Takes the resource out. False: it is not live, or another thread was first.
  bool take(unsigned kind, uint64_t id, Resource* resource) {
    return search(kind, id,
                  [&](Slot& slot, uint64_t state) { return take_from(slot, state, resource); });
  }

  uint64_t lost() const { return load(lost_); }  // resources that found no room

  // Forgets all resources. No other thread may be inside the library.
  void clear();

  // In the single-threaded child of a fork: removes what vanished threads left half done, and calls
  // visit(resource) for every live resource.
  template <typename Visit>
  void repair(Visit&& visit) {
    for (uint32_t i = 0; i < kMaxLevels && slots_[i] != nullptr; ++i) {
      const Level at = level(i);
      for (uint64_t s = 0; s < at.lines * kLine; ++s) {
        Slot& slot = at.slots[s];
        if ((slot.state & kStatusMask) == kBusy) slot.state = next_free(slot.state);
        if ((slot.state & kStatusMask) == kLive) visit(Resource{slot.size, slot.stack});
      }
    }
  }

 private:
  struct Slot {
    uint64_t state;  // version, kind, status
    uint64_t id;
    uint64_t size;
    uint32_t stack;
    uint32_t unused;
  };
  // Level n has 2^(kFirstLinesLog2 + n) lines; their `reach` bytes (block_hash.h) follow.
  struct Level {
    Slot* slots;
    uint8_t* reach;
    uint64_t lines;
    unsigned shift;
    uint32_t number;
  };
  static constexpr int kMostRounds = 1000;
  static constexpr unsigned kLine = 4;  // slots a line: two cache lines
  static constexpr unsigned kMostReach = 31;
  static constexpr unsigned kCrowded = 6;
  static constexpr unsigned kMaxLevels = 28;
  static constexpr unsigned kFirstLinesLog2 = 6;  // 256 slots, 8 KiB

  // A state: status in bits 0 and 1, kind in bits 2 to 7, version above. The version grows by one
  // when a tenant goes, so no two tenants of a slot have the same Live state.
  static constexpr uint64_t kStatusMask = 3;
  static constexpr uint64_t kFree = 0;
  static constexpr uint64_t kBusy = 1;
  static constexpr uint64_t kLive = 2;
  static constexpr uint64_t kVersion = 1u << 8;
  static uint64_t version_of(uint64_t state) { return state & ~(kVersion - 1); }
  static uint64_t next_free(uint64_t state) { return (version_of(state) + kVersion) | kFree; }

  static uint64_t home(const Level& level, unsigned kind, uint64_t id) {
    return format::mix64(id + kind * 0x9e3779b97f4a7c15u) >> level.shift;
  }

  static size_t level_bytes(uint32_t number) {
    const size_t lines = size_t{1} << (kFirstLinesLog2 + number);
    return lines * kLine * sizeof(Slot) + lines;
  }
  Level level(uint32_t number) const {
    Slot* slots = load_acquire(slots_[number]);
    const unsigned log2 = kFirstLinesLog2 + number;
    const uint64_t lines = uint64_t{1} << log2;
    return {slots, reinterpret_cast<uint8_t*>(slots + lines * kLine), lines, 64 - log2, number};
  }

  // Calls found(slot, state) for each live resource of that kind and id, until found returns true;
  // then returns true. By then another thread may have taken the resource.
  template <typename Found>
  bool search(unsigned kind, uint64_t id, Found&& found) {
    for (uint32_t i = load_acquire(newest_) + 1; i-- > 0;) {
      const Level at = level(i);
      if (at.slots == nullptr) continue;  // nothing was ever put here
      const uint64_t first = home(at, kind, id);
      unsigned distance = 0;
      do {
        Slot* line = at.slots + ((first + distance) & (at.lines - 1)) * kLine;
        for (unsigned s = 0; s < kLine; ++s) {
          const uint64_t state = load_acquire(line[s].state);
          if ((state & (kVersion - 1)) != (kLive | kind << 2) || load(line[s].id) != id) continue;
          if (found(line[s], state)) return true;
        }
      } while (distance++ < load(at.reach[first]));
    }
    return false;
  }

  // The id was read under `state`. While the slot still has that state, its tenant is the same.
  bool take_from(Slot& slot, uint64_t state, Resource* resource) {
    uint64_t seen = state;
    if (!compare_exchange(slot.state, seen, version_of(state) | kBusy)) return false;
    *resource = {load(slot.size), load(slot.stack)};
    store_release(slot.state, next_free(state));
    return true;
  }

  uint64_t insert(unsigned kind, uint64_t id, const Resource& resource, Slot** slot);
  uint64_t insert_in(const Level& level, unsigned kind, uint64_t id, const Resource& resource,
                     Slot** slot);
  void extend_reach(const Level& level, uint64_t line, unsigned distance);
  bool add_level(uint32_t number);

  uint32_t newest_ = 0;
  uint64_t lost_ = 0;
  Slot* slots_[kMaxLevels] = {};
};

// Of this process.
extern ResourceTable g_resources;

}  // namespace mtrace::ledger
