// Names of code that no loaded object holds, as runtimes register them with GDB: a list of object
// files in memory that `__jit_debug_descriptor` leads to (LLVM's JIT, PHP's).
//
// The runtime changes the list without a sign that this library could see. So it is read by copies
// that cannot fault, when a walk meets code at a new address and when a report begins, and the
// names are kept: at exit a runtime has often thrown its code away. 8,192 functions at most, in 1.5
// MiB that are mapped when the first is met. Async-signal-safe, lock-free: a thread that finds
// another one reading the list goes on without. The names are also in the file behind the tables.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "modules/executable.h"
#include "modules/object.h"

namespace mtrace::unwind {

// Call when a walk first meets an object: records the descriptor that it exports, if any.
void note_jit_descriptor(const Object& object);

namespace internal {
[[gnu::visibility("hidden")]] extern uint32_t jit_descriptors;
void look_for_jit_code(uintptr_t address);
}  // namespace internal

// Call when a walk has met code at `address`, in no object.
inline void met_code_without_object(uintptr_t address) {
  note_made_code();
  if (load(internal::jit_descriptors) != 0) internal::look_for_jit_code(address);
}

// Reads the lists anew. Call before a report, one at a time. Code that has taken the place of other
// code is known by its own name from then on.
void read_jit_names();

inline constexpr size_t kJitNameBytes = 1024;
// Writes the name of the newest function at `address` to `name`, which has room for kJitNameBytes
// and is not terminated; returns its length; 0: none is known, or read_jit_names() has written over
// it in another thread.
size_t jit_name(uintptr_t address, char* name);

// In the child of a fork, with one thread and new tables: logs the names to the file behind the
// tables (base/table_file.h), if there is one.
void log_jit_names_again();

// In the child of a fork, with one thread: ends a read that another thread of the parent began.
void read_jit_names_again();

}  // namespace mtrace::unwind
