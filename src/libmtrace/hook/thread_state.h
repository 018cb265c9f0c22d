// What a thread keeps for itself: a few bytes; the rest is in its slot of the ledger.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mtrace::hook {

struct ThreadState {
  uint32_t slot;  // 0: none asked for yet, or none to be had (see no_slot)
  bool no_slot;
  bool asking;          // the allocator for a usable size
  bool drawn;           // until_sample has been
  bool forks_inside;    // the last fork was called inside an operation on the tables
  const void* counted;  // what a hook on this thread counted last: a block, not freed since
  const void* moving;   // the block of a realloc or delete under way, which may call free by symbol
  // With MTRACE_SAMPLE only.
  uint64_t until_sample;   // bytes that blocks may have before the next one is recorded
  uint64_t before_call;    // until_sample then; UINT64_MAX: a hook nested in the call has drawn
  uint64_t after_counted;  // until_sample when `counted` was
};
[[gnu::visibility("hidden")]] extern thread_local constinit ThreadState t_thread;

}  // namespace mtrace::hook
