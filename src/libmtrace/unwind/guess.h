// Guesses the caller of a frame without call-frame information. A walk that uses a guess says so
// (Walk::guessed).
//
// Code of JIT compilers, and assembly, mostly keeps rbp as the System V ABI shows it (figure 3.3):
// it points to the caller's rbp, and the return address is the word above. Other code keeps
// anything there, so a guess by rbp must be plausible.
//
// Code of a libc without call-frame information (musl's) keeps no frame pointer either. What the
// function's end takes from the stack says how large its frame is: the nearest end behind the pc,
// or else before it, by which a return address lies there. For a function without one (or whose end
// lies elsewhere) the stack is searched upwards for the code outside of libc that called libc, and
// frames of libc between are left out. There an address is a return address if it follows a call,
// is in libc or in code with call-frame information, and there that information leads to another
// one.
#pragma once

#include "unwind/stack_memory.h"
#include "unwind/walker.h"

namespace mtrace::unwind {

// Finds the caller of the frame `from`, whose pc lies in code that runs. `memory`: has moved to
// from.sp. Async-signal-safe; never faults.
//
// Of a frame of musl: caller->pc is 0 if it has no caller, as the thread began in libc. Of any
// other, false unless
// - from.fp is a multiple of 8, and lies at or above from.sp in the same stack, not more than 1 MiB
//   away;
// - the word above is an address behind a call instruction; or both it and from.pc are in no loaded
//   object, less than 2 GiB apart, and the caller's frame pointer is as plausible as from.fp.
//   (Java's interpreter pushes return addresses that no call precedes.)
bool guess_caller(StackMemory* memory, const Registers& from, Registers* caller);

}  // namespace mtrace::unwind
