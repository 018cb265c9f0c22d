// Live blocks that found no place in the block table: MTRACE_MAX_BLOCKS, or no memory. They count
// in the entry of stacks.overflow() with their usable size, the only size still known when such a
// block is freed.
//
// A bit for each address marks these blocks, so that a block whose allocation was not recorded is
// not taken for one: 16 KiB of bits for each MiB in which one began, resident only where touched.
// If one has no memory for its bit, any unknown block may be that one.
//
// Thread-safe, async-signal-safe; the bits are private memory, never in the ledger file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"

namespace mtrace::ledger {

struct Totals {
  uint64_t bytes;
  uint64_t blocks;
};

class Unplaced {
 public:
  // `address`: below 2^48. `weight`: usable bytes and 1 block, or what
  // they stand for (ledger/sampling.h). `unmarked`: count the block even without memory for its
  // bit. False: no memory, and not counted.
  bool put(uintptr_t address, Totals weight, bool unmarked);
  // Check before querying the size of a block that is in no table. False: it is none of these.
  bool may_hold(uintptr_t address) const {
    return load(live_.blocks) != 0 && (load(unmarked_) != 0 || is_marked(address));
  }
  // Takes out a block before its free. `weight`: as put. False: the block is none of these.
  bool take(uintptr_t address, Totals weight);
  Totals live() const { return {load(live_.bytes), load(live_.blocks)}; }
  // Forgets all blocks. No other thread may be inside the library.
  void clear();

 private:
  static constexpr unsigned kGranule = 3;    // log2 of bytes a bit
  static constexpr unsigned kLeaf = 20;      // log2 of bytes of the address space
  static constexpr unsigned kBranches = 13;  // log2 of leaves in a Branch
  static constexpr unsigned kRoots = 15;
  static_assert(kLeaf + kBranches + kRoots == 48);
  struct Leaf {
    uint64_t words[(size_t{1} << (kLeaf - kGranule)) / 64];
  };
  struct Branch {
    Leaf* leaves[size_t{1} << kBranches];
  };
  struct Root {
    Branch* branches[size_t{1} << kRoots];
  };

  // The word with the block's bit, nullptr: not made.
  uint64_t* find(uintptr_t address) const;
  uint64_t* find_or_make(uintptr_t address);
  static uint64_t bit_of(uintptr_t address) { return uint64_t{1} << (address >> kGranule & 63); }
  bool is_marked(uintptr_t address) const;
  bool take_unmarked();

  Totals live_;
  uint64_t unmarked_;  // live blocks without a bit
  Root* root_;
};

}  // namespace mtrace::ledger
