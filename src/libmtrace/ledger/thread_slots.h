// One slot a thread: its number names the owner of counters, `busy` tells a fork's child which
// threads were inside the tables when they vanished, and the counts of the process that every
// operation touches lie here, where no other thread writes. A thread takes a slot at its first
// allocation; the slot of a dead thread is found by asking the kernel and used again, so nothing
// has to run at thread exit, after which frees may still come.
//
// Lock-free; async-signal-safe.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "ledger/calls.h"

namespace mtrace::ledger {

struct alignas(64) ThreadSlot {
  uint32_t tid;   // 0: free
  uint32_t busy;  // operations under way: a signal handler may begin one inside another

  // What the holders of this slot have added to the heap, less what they took. See ledger/peak.h
  // for the rest of this group.
  uint64_t live_bytes;
  uint64_t live_blocks;
  int64_t high;  // when live_bytes leaves low..high, it is told
  int64_t low;
  uint64_t told;
  uint32_t told_times;
  uint32_t most_kept;  // the widest that high and low ever were apart from `told`

  uint32_t known_sets;  // index of its KnownSets (stack_table.h); 0: it has needed none

  uint64_t calls[kCalls];
  uint64_t failed_allocations;
  uint64_t unknown_frees;
};

// Sums over all slots, also of threads that are gone.
struct ThreadTotals {
  uint64_t live_bytes;
  uint64_t live_blocks;
  uint64_t calls[kCalls];
  uint64_t failed_allocations;
  uint64_t unknown_frees;
};

class ThreadSlots {
 public:
  static constexpr uint32_t kMost = 4096;

  // Number of the slot now held by thread `tid` of process `pid`, or 0 when all are taken by
  // living threads: such a thread owns no counters and a fork cannot see it busy.
  uint32_t acquire(uint32_t pid, uint32_t tid);

  ThreadSlot& slot(uint32_t number) { return slots_[number]; }
  const ThreadSlot& slot(uint32_t number) const { return slots_[number]; }
  // The greatest number of a slot that has been held; the limits of those never held do not matter.
  uint32_t used() const { return load(used_) == 0 ? 1 : load(used_); }

  // True until a second thread, or one without a slot, has come.
  bool alone() const { return load(several_) == 0; }
  bool end_alone() { return exchange(several_, 1u) == 0; }  // true: the caller has ended it
  // The slot of the thread that is alone.
  uint32_t first() const { return first_ != 0 ? first_ : 1; }

  ThreadTotals totals() const;

  // Another process has asked for a report through the ledger, and taken the limits of threads away
  // (ThreadSlot::high), so that they come to see. answer_with(): what to do about it.
  void answer_with(void (*answer)()) { answer_ = answer; }
  void look_for_questions() {
    const uint32_t asked = load(asked_);
    if (asked != load(answered_)) [[unlikely]]
      answer(asked);
  }

  // In the child of a fork, alone: frees the slots of all threads but `survivor`, which now runs
  // as thread `tid`. Returns how many operations the others left under way.
  uint32_t keep_only(uint32_t survivor, uint32_t tid);
  // In the child of a fork, alone, of zeros: `survivor` (0: none) is the slot of its thread.
  void begin_with(uint32_t survivor, uint32_t tid);
  // Alone, of zeros, in a process whose threads go on: each holds the slot that it had in `before`.
  void hold_again(const ThreadSlots& before);
  // Then: what is live starts anew, at `bytes` and `blocks`, with `survivor` alone.
  void restart(uint32_t survivor, uint64_t bytes, uint64_t blocks);
  // Alone, also in a process whose threads hold slots: nothing is live, and nothing was counted.
  // `child`: the id of a fork's child that keep_only() was not called in, and whose first thread
  // holds one of the slots; none of them is given away while it lives. 0: it is no such process.
  void forget_counts(uint32_t child);

 private:
  friend struct Layout;
  void answer(uint32_t asked);

  uint32_t several_ = 0;
  uint32_t first_ = 0;  // 0: 1, so that all of this is zero at the start and takes no file space
  uint32_t used_ = 0;   // slots 1..used_ have been held
  uint32_t hand_ = 0;   // where the search for dead threads goes on
  uint32_t asked_ = 0;  // written by others
  uint32_t answered_ = 0;
  void (*answer_)() = nullptr;
  ThreadSlot slots_[kMost + 1] = {};
};

// Marks an operation on the tables for as long as it lives. Slot 0 serves threads without one.
class Operation {
 public:
  explicit Operation(ThreadSlot& slot) : slot_(slot) {
    add_own(slot_.busy, 1);
    compiler_barrier();
  }
  ~Operation() {
    compiler_barrier();
    add_own(slot_.busy, ~0u);
  }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

 private:
  ThreadSlot& slot_;
};

}  // namespace mtrace::ledger
