// What happens at each allocation and free. Straight lines: see the .cc file first.
//
// Thread-safe and async-signal-safe; leaves errno alone; takes no lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "ledger/ledger.h"
#include "unwind/walker.h"

namespace mtrace::hook {

// 1 while this process counts. Lies in a page that reads as zero after fork, so that one load
// answers both "are we on?" and "are we a new process?".
extern const uint64_t* g_counting;

// True: on, after doing what a new process has to do first. Kept out of the hot path.
bool counting_slowly();
inline bool counting() { return load(*g_counting) == 1 || counting_slowly(); }

// A few bytes a thread; the rest is in its slot of the ledger.
struct ThreadState {
  uint32_t slot;  // 0: none asked for yet, or none to be had (see no_slot)
  bool no_slot;
  const void* counted;  // the block that a hook on this thread counted last
};
extern thread_local constinit ThreadState t_thread;

// A hook says this before it calls the real function: a hook nested in that call that counts the
// block leaves its mark, and the block is counted once.
inline void before_call() { t_thread.counted = nullptr; }

// Counts `block` (nullptr: the allocation failed) and returns it.
void* allocated(void* block, size_t size, const unwind::Registers& caller);
// Takes `block` out of the ledger. Call it before the real free: once the real allocator has the
// block, another thread may be given the same address.
void freed(const void* block);

// A realloc under way: the old block is out of the ledger, its place kept.
class Reallocation {
 public:
  explicit Reallocation(const void* block);
  void failed();     // the old block is as it was
  void succeeded();  // the old block is gone; allocated() follows for the new one
 private:
  uintptr_t address_;
  ledger::Block block_ = {};
  ledger::BlockTable::Slot* slot_;
};

void set_depth(unsigned depth);

}  // namespace mtrace::hook
