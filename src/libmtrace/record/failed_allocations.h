// Failed allocations, as entries of the kind `failed`: where, how often, and how many bytes were
// asked for. Thread-safe; async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "unwind/walker.h"

namespace mtrace::hook {

// A call for `size` bytes (not 0) of a function by its number (format/calls.h) returned no memory.
void record_failed(size_t size, uint8_t call, const unwind::Registers& caller);

}  // namespace mtrace::hook
