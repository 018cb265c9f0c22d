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

// One resource of `bytes` was recorded by this stack, or released by whomever. A stack of
// resources has no owner: all count in one set.
inline void count_recorded(StackRecord& stack, uint64_t bytes) {
  count_allocated(stack.own, false, bytes, 0);
}
inline void count_released(StackRecord& stack, uint64_t bytes) {
  count_freed(stack.own, false, {bytes, 0, 0, false, false});
}

}  // namespace mtrace::ledger
