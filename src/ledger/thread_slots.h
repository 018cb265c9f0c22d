// One slot a thread: its number names the owner of counters, and `busy` tells a fork's child
// which threads were inside the tables when they vanished. A thread takes a slot at its first
// allocation; the slot of a dead thread is found by asking the kernel and used again, so nothing
// has to run at thread exit, after which frees may still come.
//
// Lock-free; async-signal-safe.
#pragma once

#include <cstdint>

#include "base/atomic.h"

namespace mtrace::ledger {

struct alignas(64) ThreadSlot {
  uint32_t tid;   // 0: free
  uint32_t busy;  // operations under way: a signal handler may begin one inside another
};

class ThreadSlots {
 public:
  static constexpr uint32_t kMost = 4096;

  // Number of the slot now held by thread `tid` of process `pid`, or 0 when all are taken by
  // living threads: such a thread owns no counters and a fork cannot see it busy.
  uint32_t acquire(uint32_t pid, uint32_t tid);

  ThreadSlot& slot(uint32_t number) { return slots_[number]; }

  // In the child of a fork, alone: frees the slots of all threads but `survivor`, which now runs
  // as thread `tid`. Returns how many operations the others left under way.
  uint32_t keep_only(uint32_t survivor, uint32_t tid);

 private:
  uint32_t used_ = 0;  // slots 1..used_ have been held
  uint32_t hand_ = 0;  // where the search for dead threads goes on
  ThreadSlot slots_[kMost + 1] = {};
};

// Marks an operation on the tables for as long as it lives. Slot 0 serves threads without one.
class Operation {
 public:
  explicit Operation(ThreadSlot& slot) : slot_(slot) {
    store(slot_.busy, load(slot_.busy) + 1);
    compiler_barrier();
  }
  ~Operation() {
    compiler_barrier();
    store(slot_.busy, load(slot_.busy) - 1);
  }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

 private:
  ThreadSlot& slot_;
};

}  // namespace mtrace::ledger
