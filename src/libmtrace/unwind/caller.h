// Where a walk begins.
#pragma once

#include <cstdint>

namespace mtrace::unwind {

// The state of the hooked function's caller just after the call returned.
struct Registers {
  uintptr_t pc;  // return address
  uintptr_t sp;  // stack pointer after the return: the hook's canonical frame address
  uintptr_t fp;  // frame pointer in the caller: rbp, x29
};

}  // namespace mtrace::unwind

// Caller: Registers in so few words that they go from function to function in registers. Valid
// while the function runs in which MTRACE_CALLER() is expanded, which must be compiled with a frame
// pointer.
#ifdef __x86_64__
#include "unwind/x86_64/caller.h"
#else
#include "unwind/aarch64/caller.h"
#endif

// Registers of the caller of the function this is expanded in.
#define MTRACE_CALLER_REGISTERS() (::mtrace::unwind::Registers(MTRACE_CALLER()))
