// Failed allocations, as entries of the kind `failed`: where, how often, and how many bytes were
// asked for. Thread-safe; async-signal-safe.
#pragma once

#include <cstddef>

#include "unwind/walker.h"

namespace mtrace::hook {

// A call for `size` bytes (not 0) returned no memory.
void record_failed(size_t size, const unwind::Registers& caller);

}  // namespace mtrace::hook
