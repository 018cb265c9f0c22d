// The mappings that the program itself has made: their addresses and the stacks that made them. For
// one thread at a time (base/turn.h), never across the program's own mmap or munmap.
//
// Regions are in the order of their addresses, in chunks that are in that order, too. A chunk that
// is full is split; two neighbours that fit into one are joined.
//
// A call that ends mappings has two steps, because after the call another thread may be given the
// same addresses at once. begin_end() marks the regions, and cuts them at the ends of the range.
// end() removes those that still have the mark. A put() at their addresses removes them, too.
//
// Thread-safe; async-signal-safe. A table of zeros is ready for use.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "base/turn.h"
#include "format/ledger.h"

namespace mtrace::ledger {

// Addresses [start, end), mapped by one call. What is left of a mapping counts as one region for
// each stretch without a gap, though a call under way may have cut it.
using Region = format::LedgerRegion;

class RegionTable {
 public:
  static constexpr uint32_t kMost = 1u << 18;  // regions

  // Called for each region that is removed, with the change in the number of regions: -1 one gone,
  // 0 one shorter, +1 one split in two. Must not call the table.
  using Removed = void (*)(const Region& region, int change);

  // Adds a region, and removes what the table has at its addresses. False: no room, and lost() has
  // grown.
  bool put(uintptr_t start, uintptr_t end, uint32_t stack, Removed removed);

  // A call that is about to end the mappings in [start, end).
  struct Ending {
    uintptr_t start;
    uintptr_t end;
    uint64_t bytes;  // of the regions marked
    uint32_t mark;   // 0: no region is concerned
    uint32_t births;
  };
  Ending begin_end(uintptr_t start, uintptr_t end);
  // After the call. `kept`, after a call that failed: whether a region stays. False: this is the
  // child of a fork since begin_end(), whose counters were computed without the marked regions.
  bool end(const Ending& ending, Removed removed, bool (*kept)(const Region&) = nullptr);

  // Calls visit(region) for each region. No other thread may run.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (uint32_t c = 0; c < shown_.chunks; ++c) {
      const Chunk& in = chunk(c);
      for (uint32_t i = 0; i < in.count; ++i) visit(in.regions[i]);
    }
  }

  // In the single-threaded child of a fork, after orphan_turns(): removes what vanished threads
  // were about to end. Returns how much was lost.
  uint64_t after_fork();

  // Forgets all regions. No other thread may be inside the library.
  void clear();

  void count_lost();
  uint32_t size() const { return load(size_); }

 private:
  static constexpr uint32_t kChunk = format::kLedgerRegions;  // 4 KiB with the head
  // Of neighbours that are not full enough to stay two; so two hold more than this together.
  static constexpr uint32_t kJoined = 112;
  static constexpr uint32_t kChunks = format::kLedgerRegionChunks;
  static_assert(kChunks == 2 * kMost / kJoined + 8);
  using Chunk = format::LedgerRegionChunk;
  using Store = format::LedgerRegionStore;
  struct Place {
    uint32_t chunk;  // place in the order
    uint32_t at;
  };
  class Access;
  friend struct Layout;

  Chunk& chunk(uint32_t place) const { return shown_.store->chunks[shown_.store->order[place]]; }
  Region* at(Place place) const;
  Place find(uintptr_t address) const;
  Region* next(uintptr_t* from, uintptr_t end, Place* place) const;
  bool make_store();
  void use_chunk();
  void split_chunk(uint32_t place, uint32_t keep);
  void join_chunks(uint32_t place);
  void insert(Place place, const Region& region);
  void erase(Place place);
  void remove(Place place, Removed removed);
  bool split(uintptr_t address);
  void join(uintptr_t address);
  void repair();

  uint64_t turn_ = 0;
  uint64_t origins_ = 0;
  uint32_t marks_ = 0;
  uint32_t births_ = 0;  // changes when the marks given out until then mean nothing any more
  uint32_t size_ = 0;
  // For readers of the memory (format/ledger.h).
  struct {
    uint32_t changes;  // odd: a thread is changing the table
    uint32_t chunks;   // in use
    Store* store;
  } shown_ = {};
};

// Of this process.
extern RegionTable g_regions;

}  // namespace mtrace::ledger
