// The path of nearly every malloc and free in a process that records each block: the thread has a
// slot, the block is small and in the shadow of the heap. doc/internals/malloc.md follows the path
// step by step. Other calls start over in tracker.h.
//
// Thread-safe; async-signal-safe.
#pragma once

#include <cstddef>

#include "unwind/walker.h"

namespace mtrace::hook {

// The hooks jump to these functions. Without optimisation, compilers make them calls.
void* exact_malloc(size_t size);
void exact_free(void* block);

// Handles the frees that exact_free() does not.
void free_counted(void* block, unwind::Caller caller);

}  // namespace mtrace::hook
