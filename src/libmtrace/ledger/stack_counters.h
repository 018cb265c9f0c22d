// Access to the counters of a stack for all code but the allocation path: the one place that knows
// how a record stores them. Thread-safe; async-signal-safe.
#pragma once

#include "ledger/ledger.h"

namespace mtrace::ledger {

// Live bytes and blocks of the stack. A block that another thread frees meanwhile may still count,
// and one that another thread allocates meanwhile may not.
inline Totals live_of(const StackRecord& stack) {
  const Counters now = g_ledger.stacks.read(stack);
  return {live_bytes(now), live_blocks(now)};
}

// What is live on the heap, over all stacks.
struct Usage {
  uint64_t requested;  // bytes
  uint64_t usable;     // bytes; requested bytes for blocks of unknown usable size
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
    // `slack` may be below zero while other threads count.
    sum.usable += live.bytes + (static_cast<int64_t>(slack) > 0 ? slack : 0);
  });
  return sum;
}

// Counts one resource of `bytes` as recorded by this stack, or as released by any stack. A stack of
// resources has no owner: all threads count in one set.
inline void count_recorded(StackRecord& stack, uint64_t bytes) {
  count_allocated(stack.own, false, {bytes, 1, 0});
}
inline void count_released(StackRecord& stack, uint64_t bytes) {
  count_freed(stack.own, false, {bytes, 1, 0, 0, false, false});
}

// The form of a stack's mappings (format/mapping_form.h); 0: none. It is in `set_aside`, which only
// the heap needs for the peak; the flag kLedgerMappingForm distinguishes it from bytes, which a
// fork's child stores there.
inline void set_mapping_form(StackRecord& stack, uint32_t form) {
  store(stack.own.set_aside, format::kLedgerMappingForm | form);
}
inline uint32_t mapping_form(const StackRecord& stack) {
  const uint64_t word = stack.kind != 0 ? load(stack.own.set_aside) : 0;
  return (word & format::kLedgerMappingForm) != 0 ? static_cast<uint32_t>(word) : 0;
}

// Counts `bytes` of a stack's regions as unmapped. `blocks`: the change in the number of its
// regions, -1, 0 or +1 (a hole makes two of one).
inline void count_cut(StackRecord& stack, uint64_t bytes, int blocks) {
  // A reader reads freed before allocated, and must never see more freed than allocated.
  if (blocks > 0) fetch_add<uint64_t>(stack.own.allocated_blocks, 1);
  if (bytes != 0) fetch_add(stack.own.freed_bytes, bytes);
  if (blocks >= 0) return;
  fetch_add<uint64_t>(stack.own.long_lived, 1);
  fetch_add<uint64_t>(stack.own.freed_blocks, 1);
}

}  // namespace mtrace::ledger
