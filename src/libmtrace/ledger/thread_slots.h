// One slot for each thread. Its number identifies the owner of counters, `busy` shows a fork's
// child which threads were inside the tables when they vanished, and it has the counts of the
// process that every operation changes, because no other thread writes there. A thread takes a slot
// at its first allocation. Slots of dead threads are found by querying the kernel and used again,
// so nothing has to run at thread exit, after which frees may still come.
//
// Lock-free; async-signal-safe.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "format/calls.h"
#include "format/ledger.h"

namespace mtrace::ledger {

// The allocation functions whose calls are counted. Their names: format/calls.h.
enum class Call : uint8_t {
  kMalloc,
  kCalloc,
  kRealloc,
  kReallocarray,
  kMemalign,
  kPosixMemalign,
  kAlignedAlloc,
  kValloc,
  kPvalloc,
  kNew,
  kNewArray,
  kFree,  // and cfree, free_sized, free_aligned_sized
  kDelete,
  kDeleteArray,
};
inline constexpr unsigned kCalls = 14;
static_assert(kCalls == format::kAlignedNew && kCalls == format::kLedgerCalls);

using ThreadSlot = format::LedgerThread;

// Sums over all slots, with what threads that have ended left there.
struct ThreadTotals {
  uint64_t live_bytes;
  uint64_t live_blocks;
  uint64_t calls[kCalls];
  uint64_t failed_allocations;
  uint64_t unknown_frees;
};

class ThreadSlots {
 public:
  static constexpr uint32_t kMost = format::kLedgerThreads - 1;

  // Takes a slot for thread `tid` of process `pid` and returns its number, or 0 when living threads
  // hold all. A thread without a slot owns no counters, and a fork's child cannot see it busy.
  uint32_t acquire(uint32_t pid, uint32_t tid);

  ThreadSlot& slot(uint32_t number) { return slots_[number]; }
  const ThreadSlot& slot(uint32_t number) const { return slots_[number]; }
  // The greatest number of a slot ever held, at least 1: limits of a slot never held do not matter.
  uint32_t used() const { return load(used_) == 0 ? 1 : load(used_); }

  // True until a second thread, or one without a slot, has allocated.
  bool alone() const { return load(several_) == 0; }
  bool end_alone() { return exchange(several_, 1u) == 0; }  // true: this call ended it
  // The slot of the first thread, the only one while alone().
  uint32_t first() const { return first_ != 0 ? first_ : 1; }

  ThreadTotals totals() const;

  // Whether each thread has been outside an operation since the call; what it does after that sees
  // what the caller did before. `inside`: the calling thread is in one, which does not count.
  // False: a thread stays in one, as one that does not run does, or the kernel has no
  // membarrier(2).
  bool all_were_outside(bool inside) const;

  // Another process requests a report by changing `asked_` in the ledger file and removing the
  // limits of threads (ThreadSlot::high), so that they come here. answer_with(): what to call then.
  void answer_with(void (*answer)()) { answer_ = answer; }
  void look_for_questions() {
    const uint32_t asked = load(asked_);
    if (asked != load(answered_)) [[unlikely]]
      answer(asked);
  }

  // In the single-threaded child of a fork: frees the slots of all threads but `survivor`, which
  // now runs as thread `tid`. Returns how many of the others were inside an operation.
  uint32_t keep_only(uint32_t survivor, uint32_t tid);
  // In the single-threaded child of a fork, on zeroed slots: thread `tid` holds slot `survivor`.
  void begin_with(uint32_t survivor, uint32_t tid);
  // On zeroed slots: each thread holds the slot that it had in `before`. No other thread may be
  // inside the library.
  void hold_again(const ThreadSlots& before);
  // Sets what is live to `bytes` and `blocks`, all in slot `survivor`, and makes alone() true.
  void restart(uint32_t survivor, uint64_t bytes, uint64_t blocks);
  // Resets all counts. No other thread may be inside the library; slots may stay assigned. `child`:
  // pid of a fork's child in which keep_only() was not called; 0: none. Its first thread then holds
  // all assigned slots, so that none is taken again while it lives.
  void forget_counts(uint32_t child);

 private:
  friend struct Layout;
  void answer(uint32_t asked);

  uint32_t several_ = 0;
  uint32_t first_ = 0;  // 0 means 1: all fields are zero at the start and take no file space
  uint32_t used_ = 0;   // slots 1..used_ have been held
  uint32_t hand_ = 0;   // where the search for dead threads goes on
  uint32_t asked_ = 0;  // written by other processes
  uint32_t answered_ = 0;
  void (*answer_)() = nullptr;
  ThreadSlot slots_[kMost + 1] = {};
};

// Marks an operation on the tables while it exists. Slot 0 serves threads without a slot.
class Operation {
 public:
  explicit Operation(ThreadSlot& slot) : slot_(slot) {
    add_own(slot_.busy, 1);
    store_barrier();
  }
  ~Operation() {
    compiler_barrier();
    add_own(slot_.busy, ~0u);
  }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  ThreadSlot& slot() const { return slot_; }

 private:
  ThreadSlot& slot_;
};

}  // namespace mtrace::ledger
