// malloc and free of a program that is traced exactly, as nearly every call of them goes: the
// thread has a slot, the block is small and stands in the shadow of the heap. doc/internals/malloc.md follows
// them step by step. What is unusual goes on in tracker.h, from the beginning.
//
// Thread-safe; async-signal-safe.
#pragma once

#include <cstddef>

namespace mtrace::hook {

// The hooks jump to these. Where compilers do not optimise, they call them.
void* exact_malloc(size_t size);
void exact_free(void* block);

// What exact_free() does not do.
void free_counted(void* block);

}  // namespace mtrace::hook
