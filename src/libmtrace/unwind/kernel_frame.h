// Where the kernel saves an interrupted thread's registers, from the stack pointer at the first
// instruction of the signal trampoline: struct ucontext begins there, its uc_mcontext 40 bytes on.
// Part of the kernel's ABI (arch/x86/include/uapi/asm/sigcontext.h).
#pragma once

#include <cstdint>

namespace mtrace::unwind {

inline constexpr int64_t kSignalRbp = 120;
inline constexpr int64_t kSignalRsp = 160;
inline constexpr int64_t kSignalRip = 168;

}  // namespace mtrace::unwind
