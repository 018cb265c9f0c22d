// Live blocks for which the block table had no place: MTRACE_MAX_BLOCKS, or no memory. They stand
// in the entry of stacks.overflow() with their usable size, because that is what can still be told
// of one when it is freed.
//
// A bit for each address says which blocks these are, so that a block that was allocated unseen is
// not taken for one: 16 KiB of bits for each MiB in which one began, of which the kernel gives only
// the pages that are touched. Where there is no memory for bits, any unknown block may be one.
//
// Thread-safe, async-signal-safe; the bits are the process's own, never in the file behind the
// tables.
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
  // `address`: in the lower half of the address space. `weight`: usable bytes and 1 block, or what
  // they stand for (ledger/sampling.h). False: there is no memory for its bit; then it is one of
  // these, but only if `unmarked` says so.
  bool put(uintptr_t address, Totals weight, bool unmarked);
  // Before the size of a block that is in no table is asked for. False: it is none of these.
  bool may_hold(uintptr_t address) const {
    return load(live_.blocks) != 0 && (load(unmarked_) != 0 || is_marked(address));
  }
  // The block is about to be freed. `weight`: as it was put. False: it was allocated unseen.
  bool take(uintptr_t address, Totals weight);
  Totals live() const { return {load(live_.bytes), load(live_.blocks)}; }
  // Alone.
  void clear();

 private:
  static constexpr unsigned kGranule = 3;    // log2 of bytes a bit
  static constexpr unsigned kLeaf = 20;      // log2 of bytes of the address space
  static constexpr unsigned kBranches = 13;  // log2; and so many more above
  static constexpr unsigned kRoots = 14;
  static_assert(kLeaf + kBranches + kRoots == 47);
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
  uint64_t unmarked_;  // of the live blocks
  Root* root_;
};

}  // namespace mtrace::ledger
