// The walk by libunwind, for MTRACE_UNWINDER=libunwind and as the reference for tests of the
// walker.
#pragma once

#include "unwind/walker.h"

namespace mtrace::unwind {

// Loads libunwind.so.8 with local scope: in the global scope it would take over the exception
// unwinding of the host. False: not installed, or a function is missing. May allocate.
bool open_libunwind();

// As walk(). May allocate and take libunwind's locks on first use of an object; a walk from inside
// libunwind is empty and lost. Not for signal handlers.
Walk libunwind_walk(const Registers& from, uintptr_t* frames, unsigned depth);

}  // namespace mtrace::unwind
