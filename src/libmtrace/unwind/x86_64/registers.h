// See unwind/walker.h.
#pragma once

#include <cstdint>

#include "cfi/frame_registers.h"
#include "unwind/walker.h"

namespace mtrace::unwind {

struct Caller {
  const uintptr_t* frame;

  operator Registers() const {
    return {frame[1], reinterpret_cast<uintptr_t>(frame + 2), frame[0]};
  }
};
#define MTRACE_CALLER() \
  (::mtrace::unwind::Caller{static_cast<const uintptr_t*>(__builtin_frame_address(0))})

// MTRACE_CALLER() for a function that a hook calls in its last line, by a jump. A compiler that
// does not optimise makes it a call: then this reads the hook's frame.
#ifdef __OPTIMIZE__
#define MTRACE_CALLER_OF_HOOK() MTRACE_CALLER()
#else
#define MTRACE_CALLER_OF_HOOK() \
  (::mtrace::unwind::Caller{    \
      reinterpret_cast<uintptr_t*>(*static_cast<uintptr_t*>(__builtin_frame_address(0)))})
#endif

// The registers that a function preserves, the stack pointer and the pc, here.
[[gnu::always_inline]] inline void capture(cfi::FrameRegisters* machine) {
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
  machine->known = 1u << cfi::kRbx | 1u << cfi::kFp | 1u << cfi::kSp | 0xfu << 12 | 1u << cfi::kPc;
}

}  // namespace mtrace::unwind
