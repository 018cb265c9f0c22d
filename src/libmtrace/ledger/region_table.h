// The mappings that the program itself has made: their addresses and the stacks that made them.
//
// One operation at a time, under a lock that is held only with all signals blocked, and never
// across the program's own mmap or munmap. The holder may still vanish, in a fork's child or when a
// vfork child is killed: the tree (region_tree.h) is consistent at any moment.
//
// Thread-safe; async-signal-safe. A table of zeros is ready for use.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "base/table_file.h"
#include "ledger/region_tree.h"

namespace mtrace::ledger {

// Regions, or parts of them, taken out of the table, to be counted or given back. More than kNear
// are in scratch memory from the kernel.
class Pieces {
 public:
  struct Piece {
    Region region;
    int change;  // of the number of regions: -1 one gone, 0 one shorter, +1 one split in two
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
  uint32_t births_ = 0;  // RegionTable::births_ when the pieces were taken
};

class RegionTable {
 public:
  static constexpr uint32_t kMost = RegionTree::kMost;

  // Adds a region. `covered` (empty) receives what the table had at its addresses, now taken out.
  // False: no room, and lost() has grown.
  bool put(uintptr_t start, uintptr_t end, uint32_t stack, Pieces* covered);

  // Takes out what the table has in [start, end), to be settled once the call that unmaps it has
  // returned. A region of which both ends stay becomes two.
  void take(uintptr_t start, uintptr_t end, Pieces* pieces);

  // Call before the pieces are counted or given back. False: this is the child of a fork since
  // take(), whose counters were computed from the table without the pieces.
  bool settle(const Pieces& pieces);

  // Puts back a piece of take() and joins it with what is left of its region. `change` receives the
  // change in the number of regions: +1, 0 or -1. False: its addresses are in use again; or no
  // room, and lost() has grown.
  bool give_back(const Region& region, int* change);

  // Calls visit(region) for each region. No other thread may run.
  template <typename Visit>
  void for_each(Visit&& visit) {
    tree_.walk(tree_.root(), [&](uint32_t index) { visit(tree_.region(index)); });
  }

  // In the single-threaded child of a fork: repairs what vanished threads left. Returns the number
  // of pieces taken and not settled, which count as lost.
  uint64_t after_fork();

  // Forgets all regions. No other thread may be inside the library.
  void clear() {
    tree_.clear();
    lost_ = 0;
  }

  uint64_t lost() const { return load(lost_); }  // regions of which a part was not recorded
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

  uint32_t lock_ = 0;    // id of the holder, with kWaiters
  uint32_t births_ = 0;  // forks from the first traced process to this one
  uint64_t origins_ = 0;
  uint64_t pending_ = 0;  // pieces taken and not settled
  uint64_t lost_ = 0;
  RegionTree tree_;
};

// Of this process.
extern RegionTable g_regions;

}  // namespace mtrace::ledger
