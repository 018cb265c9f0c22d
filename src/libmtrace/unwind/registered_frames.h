// Call-frame information of code that no loaded object holds, as programs register it with libgcc
// for the code that they make (__register_frame and its kin).
//
// What is registered is copied, so that a walk neither waits for a program that takes it back nor
// reads what is gone. 512 sections of at most 1 MiB, 64 MiB in all; what exceeds that is walked
// as if it were not registered.
//
// Thread-safe, async-signal-safe, lock-free.
#pragma once

#include <cstdint>

#include "unwind/cfi.h"

namespace mtrace::unwind {

// `section`: entries as in .eh_frame, ended by one of length zero. Reads what is readable of it,
// and stops at what is malformed.
void register_frames(const void* section);
// The same address as before; nothing where none is registered there.
void deregister_frames(const void* section);

// The row at `pc`. `object`: its bounds become those of the row's expressions. False: nothing was
// registered for it.
bool find_registered_row(uintptr_t pc, Object* object, Row* row);

}  // namespace mtrace::unwind
