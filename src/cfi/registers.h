// Numbers of registers in call-frame information: kFp and kSp, the frame and stack pointers;
// kReturn, the column of the return address; kPc, where FrameRegisters has the pc; kRegisters, how
// many are followed; kCfaRegisters, below which one may be the base of a CFA. code_address(): a
// return address, as it is in memory, without what is no address.
#pragma once

#ifdef __x86_64__
#include "cfi/x86_64/registers.h"
#else
#include "cfi/aarch64/registers.h"
#endif
