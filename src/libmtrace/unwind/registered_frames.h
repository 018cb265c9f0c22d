// Call-frame information of code that no loaded object holds, as programs register it with libgcc
// for the code that they make (__register_frame and its kin).
//
// Sections are copied, so that a walk neither waits for a program that deregisters one nor reads
// freed memory. 512 sections of at most 1 MiB, 64 MiB in all; code of further ones is walked as if
// it were not registered.
//
// Thread-safe, async-signal-safe, lock-free.
#pragma once

#include <cstdint>

#include "cfi/row.h"
#include "modules/object.h"

namespace mtrace::unwind {

// `section`: entries as in .eh_frame, ended by one of length zero. Copies the entries up to the
// first with unreadable bytes or an invalid length; skips unusable ones.
void register_frames(const void* section);
// Removes the section registered at this address, if any.
void deregister_frames(const void* section);

// Finds the row at `pc`, and sets the bounds of `object` to those of its expressions. False: no
// section covers `pc`, or the section changed meanwhile.
bool find_registered_row(uintptr_t pc, modules::Object* object, cfi::Row* row);
// Whether it was ever called: a walk has come to code that no loaded object holds.
bool has_seen_made_code();

}  // namespace mtrace::unwind
