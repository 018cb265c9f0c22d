#pragma once

#include "cfi/frame_registers.h"

namespace mtrace::unwind {

[[gnu::always_inline]] inline void capture(FrameRegisters* machine) {
  uintptr_t* const to = machine->registers;
  asm volatile(
      "movq %%rbx, 24(%0)\n\t"
      "movq %%rbp, 48(%0)\n\t"
      "movq %%rsp, 56(%0)\n\t"
      "movq %%r12, 96(%0)\n\t"
      "movq %%r13, 104(%0)\n\t"
      "movq %%r14, 112(%0)\n\t"
      "movq %%r15, 120(%0)\n\t"
      "leaq 0f(%%rip), %%rax\n"
      "0:\tmovq %%rax, 128(%0)"
      :
      : "r"(to)
      : "rax", "memory");
  machine->known = 1u << kRbx | 1u << kFp | 1u << kSp | 0xfu << 12 | 1u << kPc;
}

}  // namespace mtrace::unwind
