#include "record/exact_path.h"

#include "next/export.h"
#include "next/next_functions.h"
#include "record/booking.h"
#include "record/call_form.h"
#include "record/call_stack.h"
#include "record/tracker.h"
#include "record/usable_size.h"

namespace mtrace::hook {
namespace {

using ledger::g_ledger;
using ledger::HeapShadow;

// Computes the address once, so that it stays in a register.
[[gnu::always_inline]] inline ThreadState& this_thread() {
  ThreadState* self = &t_thread;
  asm("" : "+r"(self));
  return *self;
}

// Stores the last counted block and its place. A signal handler that allocates before the store of
// `counted` overwrites all of `last`, which the comparison at the end detects.
[[gnu::always_inline]] inline void set_counted(ThreadState& self, const void* block,
                                               LastBlock last) {
  self.last.word = last.word;
  compiler_barrier();
  self.last.held = last.held;
  self.last.set = last.set;
  compiler_barrier();
  self.counted = block;
  compiler_barrier();
  if (self.last.word != last.word) [[unlikely]]
    self.counted = nullptr;
}

// Counts the block in a set that the thread shares with others. `held`: as in its word.
[[gnu::noinline]] void* counted_apart(ThreadState& self, void* block, uint64_t held,
                                      uint64_t slack) {
  const ledger::Block made = HeapShadow::unpack(held);
  book_allocation_apart(self.slot, g_ledger.stacks.record(made.stack), made.size, 1, slack);
  set_counted(self, block, identity_of(made.stack, made.birth));
  return block;
}

// Returns the place of the last counted block; empty: not known.
[[gnu::always_inline]] inline LastBlock place_of_last(const ThreadState& self, const void* block) {
  compiler_barrier();
  const LastBlock last = self.last;
  compiler_barrier();
  // A signal handler in between may have allocated.
  return last.held != 0 && self.counted == block ? last : LastBlock{};
}

// Returns the thread's own set, set aside for the peak; nullptr: the thread has none.
template <bool kLast>
[[gnu::always_inline]] inline ledger::CounterSet* set_of(const ThreadState& self, LastBlock place,
                                                         ledger::Block taken) {
  if constexpr (!kLast) return own_set(self, taken.stack);
  if (g_ledger.peak.is_own_and_aside(*place.set, self.ownership)) [[likely]]
    return place.set;
  return own_set_slowly(self, taken.stack);
}

// Takes the block out of `place`. kLast: it is the last counted block. False: the block is not
// there, and nothing has changed.
template <bool kLast>
[[gnu::always_inline]] inline bool forget_at(ThreadState& self, ledger::ThreadSlot& slot,
                                             LastBlock place, void* block) {
  if (place.word == nullptr) [[unlikely]]
    return false;
  const auto address = reinterpret_cast<uintptr_t>(block);
  const uint64_t now = ledger::ticks_now();
  const uint64_t held = load(*place.word);
  if (kLast ? held != place.held : !HeapShadow::holds(held, address)) [[unlikely]]
    return false;
  const ledger::Block taken = HeapShadow::unpack(held);
  const ledger::Freed freed =
      freed_at(now, taken, {taken.size, 1}, slack_of(block, taken.size), kLast);
  ledger::CounterSet* const set = set_of<kLast>(self, place, taken);
  if (set == nullptr) [[unlikely]]
    return false;
  store_release(*place.word, uint64_t{0});
  count_call(slot, take_delete(self));
  book_free_own(slot, *set, freed);
  if (kLast) self.counted = nullptr;
  return true;
}

[[gnu::always_inline]] inline bool forget_exactly(void* block) {
  ThreadState& self = this_thread();
  if (load(*g_counting) != kRecording || self.place == nullptr) [[unlikely]]
    return false;
  ledger::Operation operation(*self.place);
  if (self.counted == block)
    return forget_at<true>(self, operation.slot(), place_of_last(self, block), block);
  uint64_t* const word = g_ledger.blocks.find_small(reinterpret_cast<uintptr_t>(block));
  return forget_at<false>(self, operation.slot(), {word, 0, nullptr}, block);
}

// False: the block has no word in the shadow, and nothing is counted.
[[gnu::always_inline]] inline bool count_exactly(ThreadState& self, void* block, uint64_t size,
                                                 unwind::Caller caller) {
  const auto address = reinterpret_cast<uintptr_t>(block);
  ledger::Operation operation(*self.place);
  uint64_t* const word = g_ledger.blocks.find_small(address);
  if (word == nullptr) [[unlikely]]
    return false;
  count_call(operation.slot(), counted_call(self.form));
  const uint32_t birth = ledger::pack_ticks(ledger::ticks_now());
  const FoundStack stack = find_stack(caller, self);
  const uint64_t held = HeapShadow::pack(address, {size, stack.index, birth});
  if (!g_ledger.blocks.put_small(*word, address, held)) [[unlikely]]
    return true;  // lost
  const uint64_t slack = slack_of(block, size);
  ledger::CounterSet* own = &stack.set;
  if (!g_ledger.peak.is_own_and_aside(*own, self.ownership)) [[unlikely]] {
    own = own_set_slowly(self, stack.index);
    if (own == nullptr) return counted_apart(self, block, held, slack), true;
  }
  book_allocation_own(operation.slot(), *own, {size, 1, slack});
  set_counted(self, block, {word, held, own});
  return true;
}

}  // namespace

MTRACE_REALIGN void* exact_malloc(size_t size) {
  ThreadState& self = this_thread();
  self.counted = nullptr;
  void* const block = g_next.malloc(size);
  // Equal: a nested hook has counted the block, or the call has failed (both nullptr).
  if (self.counted == block || load(*g_counting) != kRecording || self.place == nullptr ||
      size >= HeapShadow::kSmall || !count_exactly(self, block, size, MTRACE_CALLER_OF_HOOK()))
      [[unlikely]]
    return record(block, size, Call::kMalloc, MTRACE_CALLER_OF_HOOK());
  return block;
}

MTRACE_REALIGN void exact_free(void* block) {
  if (block == nullptr) return;
  if (!forget_exactly(block)) [[unlikely]]
    return free_counted(block, MTRACE_CALLER_OF_HOOK());
  g_next.free(block);
}

}  // namespace mtrace::hook
