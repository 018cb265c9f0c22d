// The function that the program called, if that function reaches the allocator through another
// hook: new[] of libstdc++ calls new, new calls malloc, and only malloc's hook counts. An outer
// hook stores its form and jumps on; the hook that counts takes the form. So the stack has the
// right function (`call=`), for three more instructions in malloc.
//
// A form is the number of the function (format/calls.h) from bit kFormShift on, and in the byte
// below the function that it counts as; 0 is malloc. A signal handler that allocates between the
// two hooks takes the form of the call that it interrupts: then two stacks have a wrong `call=`,
// but all numbers are right.
#pragma once

#include <errno.h>

#include <cstddef>
#include <cstdint>

#include "format/calls.h"
#include "ledger/thread_slots.h"
#include "record/sampler.h"
#include "record/thread_state.h"
#include "unwind/walk_memory.h"

namespace mtrace::record {

// The counted function (ledger/thread_slots.h) of each form; of forms that are not a function's
// own: malloc.
struct CountedCalls {
  ledger::Call of[256] = {};

  constexpr CountedCalls() {
    for (unsigned i = 0; i < ledger::kCalls; ++i) of[i] = static_cast<ledger::Call>(i);
    for (unsigned i = format::kAlignedNew; i < format::kStrdup; ++i) {
      of[i] = i % 2 == 0 ? ledger::Call::kNew : ledger::Call::kNewArray;
    }
  }
};
inline constexpr CountedCalls kCountedCalls;
static_assert(format::kAlignedNew % 2 == 0 && format::kStrdup % 2 == 0);

inline constexpr unsigned kCountedShift = unwind::WalkMemory::kFormShift - 8;
static_assert(uintptr_t{1} << kCountedShift > unwind::kKeyEnd - 1);
static_assert(ledger::kCalls <= 32);  // the byte's upper bits are WalkMemory's
constexpr uint64_t form_of(unsigned number) {
  return uint64_t{number} << unwind::WalkMemory::kFormShift |
         static_cast<uint64_t>(kCountedCalls.of[number]) << kCountedShift;
}
constexpr uint64_t form_of(ledger::Call call) { return form_of(static_cast<unsigned>(call)); }
constexpr uint8_t call_of(uint64_t form) {
  return static_cast<uint8_t>(form >> unwind::WalkMemory::kFormShift);
}

// For a hook that will call another hook: stores its form, unless an outer hook has stored one.
inline void enter_form(uint64_t form) {
  ThreadState& self = t_thread;
  // With sampling, most blocks leave their form in place: such a form belongs to an earlier call.
  const bool is_old = samples() && self.form_set != self.until_sample;
  if (self.form != 0 && !is_old) return;
  self.form = form;
  self.form_set = self.until_sample;
}
// For a hook that is about to count the block itself.
inline void set_form(uint64_t form) {
  t_thread.form = form;
  t_thread.form_set = t_thread.before_call;
}

// Returns and clears the form of the call that the hook of `call` counts.
inline uint64_t take_form(ThreadState& self, ledger::Call call) {
  const uint64_t form = self.form;
  self.form = 0;
  if (form == 0 || (samples() && self.form_set != self.before_call)) return form_of(call);
  return form;
}

// The function whose call malloc's hook counts. `form`: of the call under way.
inline ledger::Call counted_call(uint64_t form) {
  return static_cast<ledger::Call>(form >> kCountedShift & 0xff);
}
// The same of the hook of `call`.
inline ledger::Call counted_call(uint64_t form, ledger::Call call) {
  return call_of(form) < format::kMmap ? counted_call(form) : call;
}

// For operator delete, which will call free: free counts the call as delete's, the outermost one's.
inline void begin_delete(ledger::Call call) {
  constexpr auto kFree = static_cast<uint8_t>(ledger::Call::kFree);
  if (t_thread.deleting != 0) return;
  t_thread.deleting = static_cast<uint8_t>(static_cast<uint8_t>(call) - kFree);
}
// Returns the function whose call the hook of free counts.
inline ledger::Call take_delete(ThreadState& self) {
  const unsigned deleting = self.deleting;
  self.deleting = 0;
  // So that the compiler need not cut the sum to a byte.
  if (deleting >= ledger::kCalls) __builtin_unreachable();
  return static_cast<ledger::Call>(static_cast<unsigned>(ledger::Call::kFree) + deleting);
}

// Of 0 bytes, too, operator new returns a block: libstdc++ and libc++ ask malloc for this.
inline size_t of_operator(size_t size) { return size == 0 ? 1 : size; }

// Bytes that the program requested, if aligned new made the call for `size`; otherwise `size`.
inline size_t requested(size_t size, size_t alignment) {
  const uint8_t call = call_of(t_thread.form);
  if (call < format::kAlignedNew || call > format::kAlignedNothrowNewArray) return size;
  size = of_operator(size);
  const size_t asked = of_operator(t_thread.requested);
  return asked <= size && size - asked <= alignment ? asked : size;
}

// Whether a call has returned nullptr because no alignment is so: it counts, but has not failed for
// lack of memory. Allocators set errno to EINVAL then, or leave it alone.
inline bool was_refused(const void* block, size_t alignment) {
  const bool valid = alignment != 0 && (alignment & (alignment - 1)) == 0;
  return block == nullptr && !valid && errno != ENOMEM;
}

}  // namespace mtrace::record
