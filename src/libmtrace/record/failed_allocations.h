// Failed allocations, as entries of the kind `failed`: where, how often, and how many bytes were
// requested. Thread-safe; async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "unwind/walker.h"

namespace mtrace::hook {

// Records that a call for `size` bytes (not 0) of function `call` (format/calls.h) has failed.
void record_failed(size_t size, uint8_t call, const unwind::Registers& caller);

}  // namespace mtrace::hook
