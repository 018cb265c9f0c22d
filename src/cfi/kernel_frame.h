// Where the kernel saves an interrupted thread's registers, from the stack pointer at the first
// instruction of the signal trampoline: kSignalFp, kSignalSp, kSignalPc. Part of the kernel's ABI.
// is_signal_return() reads code by `read(address, to, size)`, which returns false where it cannot.
#pragma once

#ifdef __x86_64__
#include "cfi/x86_64/kernel_frame.h"
#else
#include "cfi/aarch64/kernel_frame.h"
#endif
