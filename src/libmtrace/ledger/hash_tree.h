// A hash table of entries in an arena: insert-only, lock-free, growing without moving anything. A
// digital search tree (Coffman and Eve, File Structures Using Hashing Functions, CACM 1970): each
// entry stands at a place that the low bits of its hash lead to, and an entry that finds its place
// taken goes on from there by four more bits.
//
// All operations are thread-safe and async-signal-safe. A table of zeros is ready for use.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "base/table_memory.h"

namespace mtrace::ledger {

// `Entry` has the members `hash`, an unsigned number that never changes, and `uint32_t next`. All
// calls of a tree are given the arena that its entries are in.
template <typename Entry>
class HashTree {
 public:
  // Index of the entry with this hash of which same(entry) is true; 0: there is none.
  template <typename Same>
  uint32_t find(const Arena& arena, uint64_t hash, Same&& same) const {
    const uint32_t* link = &roots_[hash % kRoots];
    for (uint64_t left = hash / kRoots;; left /= kWays) {
      const uint32_t node = load_acquire(*link);
      if (node == 0) return 0;
      Entry& entry = at(arena, node);
      if (entry.hash == hash && same(entry)) return node;
      const uint32_t more = load_acquire(entry.next);
      if (more == 0) return 0;
      link = &links(arena, more)[left % kWays];
    }
  }

  // As find(); without such an entry, inserts `fresh`, which make() returned, called once. 0:
  // make() returned 0, or there is no memory. `fresh` is not in the tree unless it is returned.
  template <typename Same, typename Make>
  uint32_t insert(Arena& arena, uint64_t hash, Same&& same, Make&& make, uint32_t& fresh) {
    uint32_t* link = &roots_[hash % kRoots];
    uint64_t left = hash / kRoots;
    for (;;) {
      uint32_t node = load_acquire(*link);
      if (node != 0) {
        // Another thread may have been first.
        Entry& entry = at(arena, node);
        if (entry.hash == hash && same(entry)) return node;
        const uint32_t more = load_acquire(entry.next);
        if (more != 0) {
          link = &links(arena, more)[left % kWays];
          left /= kWays;
          continue;
        }
      }
      if (fresh == 0) fresh = make();
      if (fresh == 0) return 0;
      if (node == 0) {
        if (compare_exchange(*link, node, fresh)) return fresh;
      } else if (!add_links(arena, at(arena, node).next)) {
        return 0;
      }
    }
  }

 private:
  static constexpr unsigned kRoots = 1u << 11;
  static constexpr unsigned kWays = 16;

  static Entry& at(const Arena& arena, uint32_t index) {
    return *static_cast<Entry*>(arena.at(index));
  }
  static uint32_t* links(const Arena& arena, uint32_t index) {
    return static_cast<uint32_t*>(arena.at(index));
  }
  // The loser of a race uses the winner's links; its own stay unused in the arena. False: no
  // memory.
  static bool add_links(Arena& arena, uint32_t& next) {
    const uint32_t fresh = arena.allocate(kWays * sizeof(uint32_t));
    uint32_t none = 0;
    if (fresh != 0) compare_exchange(next, none, fresh);
    return fresh != 0;
  }

  uint32_t roots_[kRoots] = {};
};

}  // namespace mtrace::ledger
