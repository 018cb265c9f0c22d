// What a return address stands behind: ends_with_call(), whether the kLongestCall bytes at `code`
// end with a call instruction.
#pragma once

#ifdef __x86_64__
#include "unwind/x86_64/call_instruction.h"
#else
#include "unwind/aarch64/call_instruction.h"
#endif
