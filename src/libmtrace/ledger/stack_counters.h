// The counters of a stack as everybody but the allocation path uses them: the one place that knows
// how a record keeps them. Thread-safe; async-signal-safe.
#pragma once

#include "ledger/ledger.h"

namespace mtrace::ledger {

// What the stack holds now. While other threads go on, a block that is freed meanwhile may still
// count, one that is allocated meanwhile may not.
inline Totals live_of(const StackRecord& stack) {
  const Counters now = g_ledger.stacks.read(stack);
  return {live_bytes(now), live_blocks(now)};
}

// What the heap holds, by all stacks.
struct Usage {
  uint64_t requested;  // bytes
  uint64_t usable;  // bytes; those of blocks whose usable size is not known are the requested ones
  uint64_t blocks;
};
inline Usage usage() {
  Usage sum = {};
  g_ledger.stacks.for_each([&](uint32_t, const StackRecord& stack) {
    if (stack.kind != 0) return;
    const Totals live = live_of(stack);
    uint64_t slack = 0;
    g_ledger.stacks.each_set(stack, [&](const CounterSet& set) { slack += load(set.slack); });
    sum.requested += live.bytes;
    sum.blocks += live.blocks;
    // Below zero while threads count.
    sum.usable += live.bytes + (static_cast<int64_t>(slack) > 0 ? slack : 0);
  });
  return sum;
}

// One resource of `bytes` was recorded by this stack, or released by whomever. A stack of
// resources has no owner: all count in one set.
inline void count_recorded(StackRecord& stack, uint64_t bytes) {
  count_allocated(stack.own, false, {bytes, 1, 0});
}
inline void count_released(StackRecord& stack, uint64_t bytes) {
  count_freed(stack.own, false, {bytes, 1, 0, 0, false, false});
}

// A stack of resources may belong to another stack. Its index, or of the call mmap the mapping's
// form (format/mapping_form.h), stands where a stack of the heap keeps what it set aside for the
// peak, with a mark: in a fork's child bytes stand there. 0: none.
inline void relate(StackRecord& stack, uint32_t index) {
  store(stack.own.set_aside, format::kLedgerRelated | index);
}
inline uint32_t related(const StackRecord& stack) {
  const uint64_t word = stack.kind != 0 ? load(stack.own.set_aside) : 0;
  return (word & format::kLedgerRelated) != 0 ? static_cast<uint32_t>(word) : 0;
}

// `bytes` of what a stack has recorded are gone, and by how many that has changed the number of its
// pieces (-1, 0 or +1): a hole makes two of one.
inline void count_cut(StackRecord& stack, uint64_t bytes, int blocks) {
  // A reader sees what was freed first, and never more than what was allocated.
  if (blocks > 0) fetch_add<uint64_t>(stack.own.allocated_blocks, 1);
  if (bytes != 0) fetch_add(stack.own.freed_bytes, bytes);
  if (blocks >= 0) return;
  fetch_add<uint64_t>(stack.own.long_lived, 1);
  fetch_add<uint64_t>(stack.own.freed_blocks, 1);
}

}  // namespace mtrace::ledger
