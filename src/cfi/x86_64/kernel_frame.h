// arch/x86/include/uapi/asm/sigcontext.h: struct ucontext begins at the stack pointer, its
// uc_mcontext 40 bytes on.
#pragma once

#include <cstdint>

#include "cfi/frame_registers.h"

namespace mtrace::cfi {

inline constexpr int64_t kSignalFp = 120;
inline constexpr int64_t kSignalSp = 160;
inline constexpr int64_t kSignalPc = 168;

// Whether the instructions at a return address, or at the pc before a key, are a signal trampoline
// that call-frame information does not describe. On x86_64 it describes each.
template <typename Read>
bool is_signal_return(uintptr_t, const Read&) {
  return false;
}
inline Step step_by_kernel_frame(FrameRegisters*, FrameMemory*) { return Step::kLost; }

}  // namespace mtrace::cfi
