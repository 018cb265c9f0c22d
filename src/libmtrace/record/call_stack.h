// The call stack of an allocation, as a record in the stack table.
//
// Thread-safe; async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "ledger/ledger.h"
#include "ledger/stack_table.h"
#include "modules/modules.h"
#include "record/thread_state.h"
#include "unwind/walk_memory.h"
#include "unwind/walker.h"

namespace mtrace::record {

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

// ---- Retires the stacks of unloaded modules. Thread-safe, async-signal-safe.

// Cheap. True: a module was unloaded since retire_unloaded() last ran. libc closes its own plug-ins
// from inside; only a walk that meets another module in their place notices that.
extern uint32_t g_seen_epoch;
inline bool modules_changed() { return modules::unload_epoch() != load(g_seen_epoch); }
// The loader allocates 1.1 KiB with calloc for an object's description before it maps the object
// (glibc 2.36). The vectors of thread-local blocks, one for each new thread, are smaller.
inline constexpr size_t kLeastDescription = 1024;
extern uintptr_t g_loader_begin;
extern size_t g_loader_size;  // bytes; 0: not known
inline bool loads_an_object(size_t size, const void* caller) {
  return size >= kLeastDescription &&
         reinterpret_cast<uintptr_t>(caller) - g_loader_begin < g_loader_size;
}
void find_loader();
// Retires unloaded modules before the loader maps an object, perhaps in the place of one whose
// dlclose no hook saw (looked up in libc, or libc's own).
void look_for_unloaded();

// Retires the stacks of unloaded modules, so that equal addresses make new stacks from now on.
void retire_unloaded();
// Whether every frame of a retired stack lies in the same file at the same place again.
bool modules_came_back(const ledger::StackRecord& stack);

}  // namespace mtrace::record
