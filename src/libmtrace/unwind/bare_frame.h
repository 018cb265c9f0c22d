// The step from a frame of a libc without call-frame information (musl's) to its caller.
//
// Such code keeps neither frame pointer nor table. What the function's end takes from the stack
// tells how large its frame is: the nearest end behind the pc, or else before it, by which a return
// address lies there. For a function without one (or whose end lies elsewhere) the stack is
// searched upwards for the code outside of libc that called libc, and frames of libc between are
// left out.
//
// An address is a return address if it follows a call, is in libc or in code with call-frame
// information, and there that information leads to another one. It is a guess all the same, and is
// marked as one (Walk::guessed).
#pragma once

#include "unwind/stack_memory.h"
#include "unwind/walker.h"

namespace mtrace::unwind {

// Finds the caller of the frame `from`. caller->pc 0: there is none, the thread began in libc.
// False: not found. Async-signal-safe; never faults. `memory`: has moved to from.sp.
bool find_caller_of_bare(StackMemory* memory, const Registers& from, Registers* caller);

}  // namespace mtrace::unwind
