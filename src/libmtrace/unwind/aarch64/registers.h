// See unwind/walker.h.
#pragma once

#include <cstdint>

#include "cfi/frame_registers.h"
#include "unwind/walker.h"

namespace mtrace::unwind {

// All three values, since a function that goes on by a jump takes its frame record (AAPCS64,
// section 6.4.6) away first.
struct Caller {
  Registers registers;

  operator const Registers&() const { return registers; }
};
inline Caller caller_by(const void* record, const void* sp) {
  const auto* const words = static_cast<const uintptr_t*>(record);
  return {{cfi::code_address(words[1]), reinterpret_cast<uintptr_t>(sp), words[0]}};
}
#define MTRACE_CALLER() \
  (::mtrace::unwind::caller_by(__builtin_frame_address(0), __builtin_dwarf_cfa()))
// For a function that a hook calls in its last line, by a jump.
#define MTRACE_CALLER_OF_HOOK() MTRACE_CALLER()

// The registers that a function preserves, the stack pointer and the pc, here.
[[gnu::always_inline]] inline void capture(cfi::FrameRegisters* machine) {
  uintptr_t* const to = machine->registers;
  uintptr_t scratch;
  asm volatile(
      "stp x19, x20, [%1, #152]\n\t"
      "stp x21, x22, [%1, #168]\n\t"
      "stp x23, x24, [%1, #184]\n\t"
      "stp x25, x26, [%1, #200]\n\t"
      "stp x27, x28, [%1, #216]\n\t"
      "str x29, [%1, #232]\n\t"
      "mov %0, sp\n\t"
      "str %0, [%1, #248]\n\t"
      "adr %0, 0f\n"
      "0:\tstr %0, [%1, #256]"
      : "=&r"(scratch)
      : "r"(to)
      : "memory");
  machine->known = uint64_t{0x7ff} << 19 | uint64_t{1} << cfi::kSp | uint64_t{1} << cfi::kPc;
}

}  // namespace mtrace::unwind
