// Where the kernel saves an interrupted thread's registers, from the stack pointer at the first
// instruction of the signal trampoline: kSignalFp, kSignalSp, kSignalPc. Part of the kernel's ABI.
#pragma once

#ifdef __x86_64__
#include "unwind/x86_64/kernel_frame.h"
#else
#include "unwind/aarch64/kernel_frame.h"
#endif
