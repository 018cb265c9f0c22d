// Writes the current call stack as text, for the program's own diagnostics. Async-signal-safe.
#pragma once

#include "unwind/walker.h"

namespace mtrace::report {

// Writes the stack from `caller` on, at most format::kMaxDepth frames, as lines of a memlog: the
// frames, then the modules that they name. Returns the number of frames, or -1 when a write fails.
int write_backtrace(const unwind::Registers& caller, int fd);

}  // namespace mtrace::report
