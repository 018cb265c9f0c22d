// Adds an allocation or a free to the counters of a stack and to the peak.
//
// Thread-safe; async-signal-safe.
#pragma once

#include <cstdint>

#include "ledger/ledger.h"
#include "record/thread_state.h"

namespace mtrace::hook {

inline uint64_t& count_of(ledger::ThreadSlot& slot, ledger::Call call) {
  return slot.calls[static_cast<unsigned>(call)];
}
inline void count_call(ledger::ThreadSlot& own, ledger::Call call) {
  add_own(count_of(own, call), 1);
}

// What tells a block from one that another thread has put at its address since.
inline uint64_t identity_of(uint32_t stack, uint32_t birth) {
  return uint64_t{birth} << 32 | stack;
}

// Marks `block` as the last one that the thread counted, without its place in the tables.
// `identity`: identity_of() it.
inline void set_counted(ThreadState& self, const void* block, uint64_t identity) {
  self.counted_as = identity;
  self.counted = block;
  compiler_barrier();  // this order: a signal handler in between stores the place of its own block
  self.last.held = 0;
}

// Counts in the stack's set for `slot` (0: a thread without one): the thread's own or the shared
// one. The first takes values, not an object: a hook that passes an object on the stack, or its
// address, cannot keep it in registers (and see MTRACE_EXPORT_AS_IT_IS).
void book_allocation_apart(uint32_t slot, ledger::StackRecord& stack, uint64_t bytes,
                           uint64_t blocks, uint64_t slack);
void book_free_apart(uint32_t slot, ledger::StackRecord& stack, const ledger::Freed& freed);

// Returns the set of `stack` that is probably the thread's own. The thread has a slot.
[[gnu::always_inline]] inline ledger::CounterSet& likely_set(const ThreadState& self,
                                                             uint32_t stack) {
  using ledger::g_ledger;
  const uint32_t known = load(self.place->known_sets);
  if (known != 0) [[unlikely]] {
    const uint32_t set = g_ledger.stacks.known_sets(known).find(stack);
    if (set != 0) return g_ledger.stacks.set(set);
  }
  return g_ledger.stacks.record(stack).own;
}

// Returns the thread's own set of `stack`, set aside for the peak (ledger/peak.h), so that it may
// change. nullptr: the thread has no set of its own.
ledger::CounterSet* own_set_slowly(const ThreadState& self, uint32_t stack);
[[gnu::always_inline]] inline ledger::CounterSet* own_set(const ThreadState& self, uint32_t stack) {
  ledger::CounterSet& set = likely_set(self, stack);
  if (ledger::g_ledger.peak.is_own_and_aside(set, self.ownership)) [[likely]]
    return &set;
  return own_set_slowly(self, stack);
}

// Counts in `own`, from own_set(). `slot`: the thread's.
[[gnu::always_inline]] inline void book_allocation_own(ledger::ThreadSlot& slot,
                                                       ledger::CounterSet& own,
                                                       ledger::Allocated allocated) {
  using ledger::g_ledger;
  count_allocated(own, true, allocated);
  g_ledger.peak.grown(g_ledger.threads, slot, allocated.bytes, allocated.blocks);
}
[[gnu::always_inline]] inline void book_free_own(ledger::ThreadSlot& slot, ledger::CounterSet& own,
                                                 const ledger::Freed& freed) {
  using ledger::g_ledger;
  count_freed(own, true, freed);
  g_ledger.peak.shrunk(g_ledger.threads, slot, freed.bytes, freed.blocks);
}

[[gnu::visibility("hidden")]] extern uint64_t g_short_lived;  // ticks

namespace internal {
// Returns 0 by a branch, so that the usual path does not wait for a conditional move.
[[gnu::noinline, gnu::cold]] inline uint64_t none() {
  asm volatile("");
  return 0;
}
}  // namespace internal

// Returns what to count for a free of `block`, which stands for `weight`, at `now` (ticks).
[[gnu::always_inline]] inline ledger::Freed freed_at(uint64_t now, ledger::Block block,
                                                     ledger::Weight weight, uint64_t slack,
                                                     bool temporary) {
  const uint64_t birth = ledger::unpack_ticks(block.birth);
  const uint64_t lifetime = now >= birth ? now - birth : internal::none();
  return {weight.bytes, weight.blocks, slack * weight.blocks,
          lifetime,     temporary,     lifetime <= g_short_lived};
}

}  // namespace mtrace::hook
