// Which addresses hold code that may run, by the kernel's list of mappings: code that a JIT
// compiler made lies in no object that the loader knows.
//
// What was found once stays known, also after that memory is unmapped: the answer only makes a
// guess plausible (unwind/frame_pointer.h), and no code is read for it. An address that is new
// costs a look at /proc/self/maps, 0.1 to 1 ms; after looks that found nothing, ever more questions
// are answered no without one. Thread-safe, async-signal-safe; leaves errno alone; takes no lock.
#pragma once

#include <cstdint>

namespace mtrace::unwind {

// `always`: with a look, however many were in vain. False, too: nobody could be asked (no /proc, a
// filter of system calls).
bool is_executable(uintptr_t address, bool always = false);

// Code at `address` runs.
void note_executable(uintptr_t address);

// Whether walks have met code in no loaded object, which they note.
void note_made_code();
bool met_made_code();

}  // namespace mtrace::unwind
