// capture(): the registers that a function preserves, the stack pointer and the pc, here.
#pragma once

#ifdef __x86_64__
#include "unwind/x86_64/capture.h"
#else
#include "unwind/aarch64/capture.h"
#endif
