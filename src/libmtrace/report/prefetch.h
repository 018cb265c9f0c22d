// Prefetches stack records: the stacks of a report are scattered over the stack table's memory.
#pragma once

#include <cstddef>

#include "ledger/stack_table.h"

namespace mtrace::report {

// Prefetches the record without its frames.
inline void prefetch_head(const ledger::StackRecord& stack) {
  __builtin_prefetch(&stack.own);
  __builtin_prefetch(&stack.hash);
}

// Prefetches the frames, once the rest is in the cache.
inline void prefetch_frames(const ledger::StackRecord& stack) {
  constexpr unsigned kLine = 64;
  const unsigned bytes = stack.own_frames * ledger::kFrameBytes;
  for (unsigned i = 0; i < bytes; i += kLine) __builtin_prefetch(stack.frames + i);
}

}  // namespace mtrace::report
