// arch/arm64/kernel/signal.c and arch/arm64/include/uapi/asm/sigcontext.h: a siginfo_t of 128 bytes
// begins at the stack pointer, then struct ucontext, its uc_mcontext 176 bytes on, and there, after
// the address of a fault, x0 to x30, sp and pc: as FrameRegisters has them.
#pragma once

#include <cstdint>

#include "cfi/frame_registers.h"

namespace mtrace::cfi {

inline constexpr uintptr_t kSignalRegisters = 128 + 176 + 8;
inline constexpr int64_t kSignalFp = kSignalRegisters + 8 * kFp;
inline constexpr int64_t kSignalSp = kSignalRegisters + 8 * kSp;
inline constexpr int64_t kSignalPc = kSignalRegisters + 8 * kPc;

// Whether the instructions at a return address, or at the pc before a key, are a signal trampoline:
// mov x8, #139 (rt_sigreturn); svc #0. The kernel keeps them so for unwinders, and its call-frame
// information, if there is any, leads to the interrupted function's caller.
template <typename Read>
bool is_signal_return(uintptr_t key, const Read& read) {
  uint32_t code[2];
  return read(key & ~uintptr_t{3}, code, sizeof code) && code[0] == 0xd2801168 &&
         code[1] == 0xd4000001;
}

// Restores all registers.
inline Step step_by_kernel_frame(FrameRegisters* machine, FrameMemory* memory) {
  uintptr_t from = machine->registers[kSp] + kSignalRegisters;
  for (unsigned reg = 0; reg < kRegisters; ++reg, from += sizeof from) {
    if (!memory->read(from, &machine->registers[reg])) return Step::kLost;
  }
  machine->known = (uint64_t{1} << kRegisters) - 1;
  return Step::kCaller;
}

}  // namespace mtrace::cfi
