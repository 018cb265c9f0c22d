// The mappings that the program has made itself: which addresses, and the stack that made them.
//
// One operation at a time, under a lock that is held only with all signals blocked, and never over
// a call of the program's. Its holder may vanish all the same, in a fork's child or killed as a
// vfork child: the tree (region_tree.h) is whole at any moment.
//
// Thread-safe; async-signal-safe. A table of zeros is ready for use.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "base/table_file.h"
#include "ledger/region_tree.h"

namespace mtrace::ledger {

// What was taken out of the table, to be counted or given back. Many of them lie in scratch memory
// from the kernel.
class Pieces {
 public:
  struct Piece {
    Region region;
    int change;  // of the number of regions: -1 one is gone, 0 one is shorter, +1 one is now two
  };

  Pieces() = default;
  ~Pieces();
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;
  const Piece* begin() const { return pieces_; }
  const Piece* end() const { return pieces_ + count_; }
  size_t size() const { return count_; }

 private:
  friend class RegionTable;
  static constexpr size_t kNear = 4;
  bool reserve(size_t count);  // once, while empty. False: no memory
  void add(const Region& region, int change) { pieces_[count_++] = {region, change}; }
  void clear() { count_ = 0; }

  Piece near_[kNear] = {};
  Piece* pieces_ = near_;
  size_t count_ = 0;
  size_t mapped_ = 0;    // bytes
  uint32_t births_ = 0;  // RegionTable::births_ when they were taken
};

class RegionTable {
 public:
  static constexpr uint32_t kMost = RegionTree::kMost;

  // Adds a region. `covered` (empty) gets what else was known of its addresses, which is gone.
  // False: no room, and lost() has grown.
  bool put(uintptr_t start, uintptr_t end, uint32_t stack, Pieces* covered);

  // Takes out what is known of the addresses from `start` up to `end`, to be settled once it is
  // known whether it is gone. A region of which both ends stay becomes two.
  void take(uintptr_t start, uintptr_t end, Pieces* pieces);

  // Before the pieces are counted or given back. False: this is the child of a fork that happened
  // since they were taken: the counters, made anew from the table, are without them.
  bool settle(const Pieces& pieces);

  // Puts back a piece of take(), and joins it again with what is left of its region. `change`:
  // of the number of regions, +1, 0 or -1. False: its addresses have been used again; or no room,
  // and lost() has grown.
  bool give_back(const Region& region, int* change);

  // Calls visit(region) for each; alone in its process.
  template <typename Visit>
  void for_each(Visit&& visit) {
    tree_.walk(tree_.root(), [&](uint32_t index) { visit(tree_.region(index)); });
  }

  // In the child of a fork, alone: puts in order what threads that are gone left. Returns how many
  // pieces were taken and not settled, which are counted as lost.
  uint64_t after_fork();

  // Then: forgets all.
  void clear() {
    tree_.clear();
    lost_ = 0;
  }

  uint64_t lost() const { return load(lost_); }  // regions of which something was not kept
  void count_lost() {
    fetch_add<uint64_t>(lost_, 1);
    sys::count_loss(&format::LedgerHeader::lost_regions);
  }
  uint32_t size() const { return tree_.size(); }

 private:
  class Lock;
  friend struct Layout;
  bool acquire();
  void release();
  RegionTree::Halves take_range(uintptr_t start, uintptr_t end, Pieces* pieces);

  uint32_t lock_ = 0;    // thread that holds it, and kWaiters
  uint32_t births_ = 0;  // forks of which this process is a child
  uint64_t origins_ = 0;
  uint64_t pending_ = 0;  // pieces taken and not settled
  uint64_t lost_ = 0;
  RegionTree tree_;
};

// Of this process.
extern RegionTable g_regions;

}  // namespace mtrace::ledger
