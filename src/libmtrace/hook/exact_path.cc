#include "hook/exact_path.h"

#include "hook/booking.h"
#include "hook/call_stack.h"
#include "hook/export.h"
#include "hook/next_functions.h"
#include "hook/tracker.h"
#include "hook/usable_size.h"

namespace mtrace::hook {
namespace {

using ledger::g_ledger;
using ledger::HeapShadow;

// The address once, so that it stays in a register.
[[gnu::always_inline]] inline ThreadState& this_thread() {
  ThreadState* self = &t_thread;
  asm("" : "+r"(self));
  return *self;
}

void count_call(const ThreadState& self, Call call) {
  add_own(self.place->calls[static_cast<unsigned>(call)], 1);
}

// Remembers where `counted` stands. A signal handler that allocates at any moment before the last
// store has written all of `last` anew.
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

[[gnu::noinline, gnu::cold]] void* unusual_malloc(void* block, size_t size, unwind::Caller caller) {
  return record(block, size, Call::kMalloc, caller);
}

// A block that is there: what its word holds, and the thread's own set of its stack.
struct Found {
  uint64_t held;  // 0: nothing is found
  ledger::CounterSet* set;
};

// Takes the last block out where it is remembered.
[[gnu::always_inline]] inline Found take_last(ThreadState& self, const void* block) {
  compiler_barrier();
  const LastBlock last = self.last;
  compiler_barrier();
  // A handler that came between may have allocated.
  if (last.held == 0 || self.counted != block || load(*last.word) != last.held) return {};
  store_release(*last.word, uint64_t{0});
  return {last.held, last.set};
}

[[gnu::always_inline]] inline Found take(const ThreadState& self, uintptr_t address,
                                         uint64_t* word) {
  if (word == nullptr) [[unlikely]]
    return {};
  const uint64_t held = load(*word);
  if (!HeapShadow::holds(held, address)) [[unlikely]]
    return {};
  ledger::StackRecord& stack = g_ledger.stacks.record(HeapShadow::unpack(held).stack);
  ledger::CounterSet* const own = g_ledger.stacks.own_set(stack, self.slot);
  if (own == nullptr) [[unlikely]]
    return {};
  store_release(*word, uint64_t{0});
  return {held, own};
}

// False: the block is not where it nearly always is, or not to be counted. Nothing has changed.
[[gnu::always_inline]] inline bool forget_exactly(void* block) {
  ThreadState& self = this_thread();
  if (load(*g_counting) != kRecording || self.place == nullptr) [[unlikely]]
    return false;
  ledger::Operation operation(*self.place);
  const auto address = reinterpret_cast<uintptr_t>(block);
  const bool temporary = self.counted == block;
  uint64_t* const word = temporary ? nullptr : g_ledger.blocks.expect_small_to_take(address);
  const uint64_t now = ledger::ticks_now();
  const Found found = temporary ? take_last(self, block) : take(self, address, word);
  if (found.held == 0) [[unlikely]]
    return false;
  count_call(self, Call::kFree);
  const ledger::Block taken = HeapShadow::unpack(found.held);
  book_free_own(self, *found.set,
                freed_at(now, taken, {taken.size, 1}, slack_of(block, taken.size), temporary));
  if (temporary) self.counted = nullptr;
  return true;
}

}  // namespace

MTRACE_REALIGN void* exact_malloc(size_t size) {
  ThreadState& self = this_thread();
  self.counted = nullptr;
  void* const block = g_next.malloc(size);
  const unwind::Caller caller = MTRACE_CALLER_OF_HOOK();
  // Counted by a hook nested in that call, or failed: nullptr as before.
  if (self.counted == block || load(*g_counting) != kRecording || self.place == nullptr ||
      size >= HeapShadow::kSmall) [[unlikely]]
    return unusual_malloc(block, size, caller);
  const auto address = reinterpret_cast<uintptr_t>(block);
  uint64_t* const word = g_ledger.blocks.expect_small(address);
  if (word == nullptr) [[unlikely]]
    return unusual_malloc(block, size, caller);
  ledger::Operation operation(*self.place);
  count_call(self, Call::kMalloc);
  const uint32_t birth = ledger::pack_ticks(ledger::ticks_now());
  const FoundStack stack = find_stack(caller, self.slot, *self.walks);
  const ledger::Block entry = {size, stack.index, birth};
  if (!g_ledger.blocks.put(word, address, entry)) [[unlikely]]
    return enter_unplaced_malloc(block);
  const ledger::Allocated allocated = {size, 1, slack_of(block, size)};
  ledger::CounterSet* const own = g_ledger.stacks.own_set(stack.record, self.slot);
  if (own == nullptr) [[unlikely]] {
    book_allocation_apart(self.slot, stack.record, size, 1, allocated.slack);
    self.counted = block;
    compiler_barrier();
    self.last.held = 0;
    return block;
  }
  book_allocation_own(self, *own, allocated);
  set_counted(self, block, {word, HeapShadow::pack(address, entry), own});
  return block;
}

MTRACE_REALIGN void exact_free(void* block) {
  if (block == nullptr) return;
  if (!forget_exactly(block)) [[unlikely]]
    return free_counted(block);
  g_next.free(block);
}

}  // namespace mtrace::hook
