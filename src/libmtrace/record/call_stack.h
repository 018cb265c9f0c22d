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

// The known walks of each thread, by slot, with the stack that each walk led to.
[[gnu::visibility(
    "hidden")]] extern unwind::WalkMemory g_known_walks[ledger::ThreadSlots::kMost + 1];

// Walks the stack from `caller`, which called the function `form` (record/call_form.h), and returns
// the index of its record. Slot 0: a thread without one.
uint32_t walk_to_stack(const unwind::Registers& caller, uint32_t slot, uint64_t form);
uint32_t walk_to_stack(unwind::Caller caller, uint32_t slot, uint64_t form);

// Returns the index of the record for the stack at `caller`, of a kind and a called function
// (format/calls.h) by their numbers; 0: no room. `form`: of a mapping (format/mapping_form.h), 0:
// none. Call it within an operation (ledger/thread_slots.h).
uint32_t intern_of_kind(unsigned kind, const unwind::Registers& caller,
                        uint8_t call = format::kNoCall, uint32_t form = 0);

// A stack and one of its sets of counters: the thread's own if the walk was known. (Kept with the
// walk, so that a stack's second thread does not read a line that the first one writes.)
struct FoundStack {
  uint32_t index;
  ledger::CounterSet& set;
};

// Finds the stack at `caller`, without walking if the walk is known. Takes the form from the
// thread's state; reads it twice rather than keep it in a register. `has_slot`: the thread has one.
[[gnu::always_inline]] inline FoundStack find_stack(unwind::Caller caller, ThreadState& self,
                                                    bool has_slot) {
  unwind::WalkMemory::Known known;
  if (has_slot && self.walks->find(caller, known, self.form)) [[likely]] {
    self.form = 0;
    return {known.stack, *static_cast<ledger::CounterSet*>(known.counters)};
  }
  const uint64_t form = self.form;
  self.form = 0;
  const uint32_t walked = walk_to_stack(caller, self.slot, form);
  return {walked, ledger::g_ledger.stacks.record(walked).own};
}

// Sets how many return addresses are kept, 1 to format::kMaxDepth. Before the first allocation.
void set_depth(unsigned depth);
// For a thread that takes `slot`.
inline void begin_walks(uint32_t slot) { g_known_walks[slot].forget(); }
// Forgets all walks: the tables are new ones, or begin again. By a thread that is alone.
void forget_walks();

}  // namespace mtrace::hook
