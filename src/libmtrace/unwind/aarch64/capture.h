#pragma once

#include "cfi/frame_registers.h"

namespace mtrace::unwind {

[[gnu::always_inline]] inline void capture(FrameRegisters* machine) {
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
  machine->known = uint64_t{0x7ff} << 19 | uint64_t{1} << kSp | uint64_t{1} << kPc;
}

}  // namespace mtrace::unwind
