// The call stack of an allocation, as a record in the stack table.
//
// Thread-safe; async-signal-safe.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "ledger/ledger.h"
#include "record/thread_state.h"
#include "unwind/walk_memory.h"
#include "unwind/walker.h"

namespace mtrace::hook {

// The walks of each thread, by slot, and the stacks that they led to.
[[gnu::visibility(
    "hidden")]] extern unwind::WalkMemory g_known_walks[ledger::ThreadSlots::kMost + 1];
[[gnu::visibility("hidden")]] extern unsigned g_depth;

// Walks from `caller` on, which called the function `form` (record/call_form.h). Slot 0: a thread
// without one.
uint32_t walk_to_stack(const unwind::Registers& caller, uint32_t slot, uint64_t form);
uint32_t walk_to_stack(unwind::Caller caller, uint32_t slot, uint64_t form);

// Index of the record of the stack that begins at `caller`, of a kind and of the function that was
// called (format/calls.h) by their numbers. `related`: index of the stack that it belongs to, or of
// mmap the form of the mapping (format/mapping_form.h).
// 0: no room.
// Within an operation (ledger/thread_slots.h).
uint32_t intern_of_kind(unsigned kind, const unwind::Registers& caller,
                        uint8_t call = format::kNoCall, uint32_t related = 0);
// Part of the form of a stack whose blocks are no leaks: the thread ignores leaks.
inline constexpr uint64_t kIgnoredForm = uint64_t{1} << (unwind::WalkMemory::kFormShift - 1);
inline uint64_t ignored_form(const ThreadState& self) {
  return self.ignoring != 0 ? kIgnoredForm : 0;
}
// Whether the thread, of that slot, ignores leaks has changed, or it takes the slot: a thread that
// does knows no walk, so that each comes to walk_to_stack() with ignored_form().
void choose_walks(ThreadState& self, uint32_t slot);

// A stack and the set of counters that is the thread's own, if it has one; otherwise another of the
// stack's. (The second thread of a stack would else read a line that the first one writes.)
struct FoundStack {
  uint32_t index;
  ledger::CounterSet& set;
};

// The same for a thread with a slot, of the form in its state, which it takes: without a walk where
// it is known. The form is read twice rather than kept in a register.
[[gnu::always_inline]] inline FoundStack find_stack(unwind::Caller caller, ThreadState& self) {
  unwind::WalkMemory::Known known;
  if (self.walks->find(caller, known, self.form)) [[likely]] {
    self.form = 0;
    return {known.stack, *static_cast<ledger::CounterSet*>(known.counters)};
  }
  const uint64_t form = self.form;
  self.form = 0;
  const uint32_t walked = walk_to_stack(caller, self.slot, form | ignored_form(self));
  return {walked, ledger::g_ledger.stacks.record(walked).own};
}

// Return addresses kept of each stack, 1 to format::kMaxDepth. Before the first allocation.
void set_depth(unsigned depth);
// A thread takes the slot.
inline void begin_walks(uint32_t slot) { g_known_walks[slot].forget(); }
// No walk is known any more: the tables are new ones, or begin again. By a thread that is alone.
void forget_walks();

}  // namespace mtrace::hook
