// How many code objects CPython has freed. As long as none was, an instruction's address stands for
// the same function: walks that are known (python/walks.cc) need not look at names again.
//
// The interpreter is told to call a function of the library's that counts and goes on to the
// interpreter's own: the one word of its memory that the library writes, the tp_dealloc of
// PyCode_Type.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "modules/object.h"

namespace mtrace::unwind {

// What `object` frees code objects with: the word that says so, and what it says. No word: it is
// not known, or none of the object's own functions.
struct CodeFree {
  uintptr_t* word;
  uintptr_t function;
};
CodeFree find_code_free(const Object& object, uintptr_t code_type);

// From here on code objects that are freed are counted. Once for an interpreter that is loaded.
// Lock-free, async-signal-safe.
void watch_code(const CodeFree& free);

namespace internal {
[[gnu::visibility("hidden")]] extern uint64_t code_deaths;
}

// Not less than before, and more when one was freed meanwhile. 0: it is not known.
inline uint64_t code_deaths() { return load_acquire(internal::code_deaths); }

}  // namespace mtrace::unwind
