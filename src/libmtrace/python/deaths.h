// Counts the code objects that CPython frees. While none is freed, an instruction's address stands
// for the same function: known walks (python/walks.cc) need not look at names again.
//
// The library puts a function of its own, which counts and goes on to the interpreter's, into the
// tp_dealloc of PyCode_Type: the one word of the interpreter's memory that the library writes.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "modules/object.h"

namespace mtrace::unwind {

// The tp_dealloc of code objects in `object`: its address and its value. `word` is nullptr: not
// known, or the value is none of the object's own functions.
struct CodeFree {
  uintptr_t* word;
  uintptr_t function;
};
CodeFree find_code_free(const Object& object, uintptr_t code_type);

// Begins to count freed code objects. Once for an interpreter that is loaded. Lock-free,
// async-signal-safe.
void watch_code(const CodeFree& free);

namespace internal {
[[gnu::visibility("hidden")]] extern uint64_t code_deaths;
}

// Never decreases, and grows when a code object is freed. 0: not counted.
inline uint64_t code_deaths() { return load_acquire(internal::code_deaths); }

}  // namespace mtrace::unwind
