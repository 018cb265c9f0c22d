// The step from a frame without call-frame information to its caller, by the frame pointer.
//
// Code of JIT compilers, and assembly, mostly keeps rbp as the System V ABI shows it (figure 3.3):
// it points to the caller's rbp, and the return address is the word above. Other code keeps
// anything there. So this is a guess, and is made only where it is plausible; a walk that uses a
// guess says so (Walk::guessed).
#pragma once

#include <cstdint>

#include "unwind/stack_memory.h"
#include "unwind/walker.h"

namespace mtrace::unwind {

// Finds the caller of the frame `from`, whose pc lies in code that runs. False unless
// - from.fp is a multiple of 8, and lies at or above from.sp in the same stack, not more than 1 MiB
//   away;
// - the word above is an address behind a call instruction; or both it and from.pc are in no loaded
//   object, less than 2 GiB apart, and the caller's frame pointer is as plausible as from.fp.
//   (Java's interpreter pushes return addresses that no call precedes.)
// Async-signal-safe; never faults. `memory`: has moved to from.sp.
// Code of a libc without call-frame information keeps no frame pointer: see bare_frame.h.
bool guess_caller(StackMemory* memory, const Registers& from, Registers* caller);

// Whether a call stands in front of the address, from kLongestCall on. Never faults.
bool follows_call(uintptr_t address);

}  // namespace mtrace::unwind
