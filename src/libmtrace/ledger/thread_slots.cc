#include "ledger/thread_slots.h"

#include <cstring>

#include "base/process.h"

namespace mtrace::ledger {

uint32_t ThreadSlots::acquire(uint32_t pid, uint32_t tid) {
  // Every new thread looks at four slots for a dead holder, so the number of slots used stays near
  // the greatest number of threads that lived at once.
  constexpr unsigned kAsked = 4;
  const uint32_t used = load(used_);
  for (unsigned i = 0; i < kAsked && used > 0; ++i) {
    const uint32_t number = fetch_add(hand_, 1u) % used + 1;
    uint32_t holder = load(slots_[number].tid);
    if (holder != 0 && base::thread_exists(pid, holder)) continue;
    if (compare_exchange(slots_[number].tid, holder, tid)) {
      store(slots_[number].busy, 0u);
      return number;
    }
  }
  uint32_t last = used;
  while (last < kMost) {
    if (!compare_exchange(used_, last, last + 1)) continue;
    uint32_t expected = 0;
    if (compare_exchange(slots_[last + 1].tid, expected, tid)) return last + 1;
  }
  return 0;
}

uint32_t ThreadSlots::keep_only(uint32_t survivor, uint32_t tid) {
  uint32_t operations = 0;
  for (uint32_t number = 1; number <= used_ && number <= kMost; ++number) {
    ThreadSlot& slot = slots_[number];
    if (number == survivor) {
      slot.tid = tid;
      continue;
    }
    if (slot.tid != 0) operations += slot.busy != 0;
    if (slot.tid != 0) slot.tid = slot.busy = 0;
  }
  return operations;
}

void ThreadSlots::begin_with(uint32_t survivor, uint32_t tid) {
  used_ = survivor;
  if (survivor != 0) slots_[survivor].tid = tid;
}

void ThreadSlots::hold_again(const ThreadSlots& before) {
  several_ = before.several_;
  first_ = before.first_;
  used_ = before.used_;
  for (uint32_t number = 1; number <= used_ && number <= kMost; ++number) {
    slots_[number].tid = before.slots_[number].tid;
  }
}

void ThreadSlots::restart(uint32_t survivor, uint64_t bytes, uint64_t blocks) {
  for (uint32_t number = 0; number <= used() && number <= kMost; ++number) {
    ThreadSlot& slot = slots_[number];
    // Most slots were never held: their pages stay untouched.
    if (slot.live_bytes != 0) slot.live_bytes = 0;
    if (slot.live_blocks != 0) slot.live_blocks = 0;
    if (slot.published != 0) slot.published = 0;
    if (slot.high != 0) slot.high = 0;
    if (slot.low != 0) slot.low = 0;
    if (slot.publications != 0) slot.publications = 0;
    if (slot.most_kept != 0) slot.most_kept = 0;
  }
  several_ = 0;
  first_ = survivor;
  slots_[first()].live_bytes = slots_[first()].published = bytes;
  slots_[first()].live_blocks = blocks;
}

void ThreadSlots::forget_counts(uint32_t child) {
  const uint32_t several = several_;
  restart(first_, 0, 0);
  several_ = several;
  for (uint32_t number = 0; number <= used() && number <= kMost; ++number) {
    ThreadSlot& slot = slots_[number];
    memset(slot.calls, 0, sizeof slot.calls);
    slot.failed_allocations = slot.unknown_frees = 0;
    slot.busy = 0;
    if (child != 0 && slot.tid != 0) slot.tid = child;
  }
}

// Of several threads that come at once, one calls the function.
void ThreadSlots::answer(uint32_t asked) {
  if (exchange(answered_, asked) != asked && answer_ != nullptr) answer_();
}

ThreadTotals ThreadSlots::totals() const {
  ThreadTotals sum = {};
  for (uint32_t number = 0; number <= used() && number <= kMost; ++number) {
    const ThreadSlot& slot = slots_[number];
    sum.live_bytes += load(slot.live_bytes);
    sum.live_blocks += load(slot.live_blocks);
    for (unsigned call = 0; call < kCalls; ++call) sum.calls[call] += load(slot.calls[call]);
    sum.failed_allocations += load(slot.failed_allocations);
    sum.unknown_frees += load(slot.unknown_frees);
  }
  return sum;
}

bool ThreadSlots::all_were_outside(bool inside) const {
#ifndef MTRACE_ATOMICS
  constexpr int kLooks = 1000;
#else
  constexpr int kLooks = 1;
#endif
  // Operations begin without a fence: a thread may have read a word before others see it busy.
  if (!single_threaded() && !base::fence_all_threads()) return false;
  const uint32_t self = base::thread_id();
  for (uint32_t number = 0; number <= used() && number <= kMost; ++number) {
    const ThreadSlot& slot = slots_[number];
    const uint32_t own = inside && load(slot.tid) == self ? 1 : 0;
    for (int look = 0; load(slot.busy) > own; ++look) {
      if (look == kLooks) return false;
    }
  }
  full_fence();
  return true;
}

}  // namespace mtrace::ledger
