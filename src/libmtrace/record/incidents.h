// Calls that leave no live block, as entries of kinds of their own: failed allocations (`failed`)
// and, with MTRACE_UNKNOWN=stacks, frees of unknown blocks (`unknown-free`).
//
// Thread-safe; async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "unwind/walker.h"

namespace mtrace::hook {

// MTRACE_UNKNOWN=stacks.
[[gnu::visibility("hidden")]] extern bool g_unknown_frees_have_stacks;

// Records that a call for `size` bytes (not 0) of function `call` (format/calls.h) has failed.
void record_failed(size_t size, uint8_t call, const unwind::Registers& caller);
// Records, if asked to, a free of a block that is in no table.
void record_unknown_free(unwind::Caller caller);

}  // namespace mtrace::hook
