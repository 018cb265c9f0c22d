// Which addresses hold code that may run, by the kernel's list of mappings: code that a JIT
// compiler made lies in no object that the loader knows.
//
// A page once found executable stays so, also after it is unmapped: the answer only makes a guess
// plausible (unwind/frame_pointer.h), and no code is read for it. A new page costs a read of
// /proc/thread-self/maps, 0.1 to 1 ms; after reads that found nothing, ever more queries are answered
// false without one. Thread-safe, async-signal-safe; leaves errno alone; takes no lock.
#pragma once

#include <cstdint>

namespace mtrace::unwind {

// `always`: reads the maps, however many reads were in vain. False also when they cannot be read
// (no /proc, a filter of system calls).
bool is_executable(uintptr_t address, bool always = false);

// Records that code at `address` runs.
void note_executable(uintptr_t address);

// Record and query that a walk has met code in no loaded object.
void note_made_code();
bool met_made_code();

}  // namespace mtrace::unwind
