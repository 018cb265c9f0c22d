// Names of code that no loaded object holds, as runtimes tell them to GDB: a list of object files
// in memory that `__jit_debug_descriptor` leads to (LLVM's JIT, PHP's).
//
// The list is the runtime's and changes without a sign that this library could see. So it is read
// by copies that cannot fault, when a walk meets code at a new address and when a report begins,
// and the names are kept: at exit a runtime has often thrown its code away. 8,192 functions at
// most, in 1.5 MiB that are mapped when the first is met. Async-signal-safe, lock-free: who finds
// another thread reading the list goes on without. Readers of the file behind the tables find the
// names there, too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "modules/executable.h"
#include "modules/object.h"

namespace mtrace::unwind {

// Of an object that a walk meets for the first time: notes the descriptor that it exports, if any.
void note_jit_descriptor(const Object& object);

namespace internal {
[[gnu::visibility("hidden")]] extern uint32_t jit_descriptors;
void look_for_jit_code(uintptr_t address);
}  // namespace internal

// A walk has met code at `address`, in no object.
inline void met_code_without_object(uintptr_t address) {
  note_made_code();
  if (load(internal::jit_descriptors) != 0) internal::look_for_jit_code(address);
}

// Before a report, one at a time: reads the lists anew. What code has come to the place of other
// code has its name from now on.
void read_jit_names();

// The name of the function at `address`, `*bytes` long; nullptr: none is known. The last that came
// to this place. For the report under way: the next read_jit_names() may write over the text.
const char* jit_name(uintptr_t address, size_t* bytes);

// In the child of a fork, alone: the file behind the tables (base/table_file.h) is another one, or
// none.
void log_jit_names_again();

// In the child of a fork, alone: another thread of the parent may have been reading a list.
void read_jit_names_again();

}  // namespace mtrace::unwind
