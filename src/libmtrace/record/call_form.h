// Which function the program called, where that one reaches the allocator by another hook: new[] of
// libstdc++ calls new, that one malloc, and only malloc's hook counts. The outer hooks jump on and
// leave behind what they are; the hook that counts takes it. So a stack knows its function
// (`call=`), and the path of malloc itself has two instructions more.
//
// A form is the number of the function (format/calls.h) from bit kFormShift on; 0 is malloc.
// A signal handler that allocates between the two hooks takes the form of the call it interrupts:
// the names of two stacks are then wrong, no number is.
#pragma once

#include <cstddef>
#include <cstdint>

#include "format/calls.h"
#include "ledger/calls.h"
#include "record/sampler.h"
#include "record/thread_state.h"
#include "unwind/walk_memory.h"

namespace mtrace::hook {

constexpr uint64_t form_of(unsigned number) {
  return uint64_t{number} << unwind::WalkMemory::kFormShift;
}
constexpr uint64_t form_of(ledger::Call call) { return form_of(static_cast<unsigned>(call)); }
constexpr uint8_t call_of(uint64_t form) {
  return static_cast<uint8_t>(form >> unwind::WalkMemory::kFormShift);
}

// The program calls a function of this form, which will call another hook. The outermost counts.
inline void enter_form(uint64_t form) {
  ThreadState& self = t_thread;
  // Of blocks that are not looked at nobody takes the form: it is then of long ago.
  const bool is_old = samples() && self.form_set != self.until_sample;
  if (self.form != 0 && !is_old) return;
  self.form = form;
  self.form_set = self.until_sample;
}
// The function itself is about to count the block.
inline void set_form(uint64_t form) {
  t_thread.form = form;
  t_thread.form_set = t_thread.before_call;
}

// The form of the call that is being counted, by the hook of `call`.
inline uint64_t take_form(ThreadState& self, ledger::Call call) {
  const uint64_t form = self.form;
  self.form = 0;
  if (form == 0 || (samples() && self.form_set != self.before_call)) return form_of(call);
  return form;
}

// The bytes that the program asked for, of a call for `size` that may come from aligned new.
inline size_t requested(size_t size, size_t alignment) {
  const uint8_t call = call_of(t_thread.form);
  if (call != format::kAlignedNew && call != format::kAlignedNewArray) return size;
  const size_t asked = t_thread.requested;
  return asked <= size && size - asked <= alignment ? asked : size;
}

}  // namespace mtrace::hook
