// What an allocation and a free change in the counters of a stack and in the peak.
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
// By a thread with a slot.
inline void count_call(const ThreadState& self, ledger::Call call) {
  add_own(count_of(*self.place, call), 1);
}

// The thread has counted a block of which it does not remember where it stands.
inline void set_counted(ThreadState& self, const void* block) {
  self.counted = block;
  compiler_barrier();  // a handler that comes between has its own place remembered
  self.last.held = 0;
}

// In a set that is not the thread's own, or by a thread without a slot (0).
// Takes no object: a hook that passes one on the stack, or its address, does not keep it in
// registers (and see MTRACE_EXPORT_AS_IT_IS).
void book_allocation_apart(uint32_t slot, ledger::StackRecord& stack, uint64_t bytes,
                           uint64_t blocks, uint64_t slack);
void book_free_apart(uint32_t slot, ledger::StackRecord& stack, const ledger::Freed& freed);

// The set of a stack that is probably the thread's own. The thread has a slot.
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

// The thread's own set of a stack, which has set aside what it holds: now it may change. nullptr:
// the thread has none.
ledger::CounterSet* own_set_slowly(const ThreadState& self, uint32_t stack);
[[gnu::always_inline]] inline ledger::CounterSet* own_set(const ThreadState& self, uint32_t stack) {
  ledger::CounterSet& set = likely_set(self, stack);
  if (ledger::g_ledger.peak.is_own_and_aside(set, self.ownership)) [[likely]]
    return &set;
  return own_set_slowly(self, stack);
}

// By a thread with a slot, in its own_set().
[[gnu::always_inline]] inline void book_allocation_own(const ThreadState& self,
                                                       ledger::CounterSet& own,
                                                       ledger::Allocated allocated) {
  using ledger::g_ledger;
  count_allocated(own, true, allocated);
  g_ledger.peak.grown(g_ledger.threads, *self.place, allocated.bytes, allocated.blocks);
}
[[gnu::always_inline]] inline void book_free_own(const ThreadState& self, ledger::CounterSet& own,
                                                 const ledger::Freed& freed) {
  using ledger::g_ledger;
  count_freed(own, true, freed);
  g_ledger.peak.shrunk(g_ledger.threads, *self.place, freed.bytes, freed.blocks);
}

[[gnu::visibility("hidden")]] extern uint64_t g_short_lived;  // ticks

namespace internal {
// 0, by a branch: so the usual way does not wait for a choice.
[[gnu::noinline, gnu::cold]] inline uint64_t none() {
  asm volatile("");
  return 0;
}
}  // namespace internal

// What the free of a block at the time `now` counts as, if the block stands for `weight`.
[[gnu::always_inline]] inline ledger::Freed freed_at(uint64_t now, ledger::Block block,
                                                     ledger::Weight weight, uint64_t slack,
                                                     bool temporary) {
  const uint64_t birth = ledger::unpack_ticks(block.birth);
  const uint64_t lifetime = now >= birth ? now - birth : internal::none();
  return {weight.bytes, weight.blocks, slack * weight.blocks,
          lifetime,     temporary,     lifetime <= g_short_lived};
}

}  // namespace mtrace::hook
