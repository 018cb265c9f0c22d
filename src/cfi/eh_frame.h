// Finds the frame description entry (FDE) for an address in .eh_frame.
// Formats: Linux Standard Base Core, "Exception Frames" (.eh_frame, .eh_frame_hdr) and DWARF 5,
// section 6.4.1. Nothing outside the object's bounds is read, and every loop is bounded by them,
// whatever the bytes say. Async-signal-safe.
#pragma once

#include <cstdint>

#include "cfi/cursor.h"

namespace mtrace::cfi {

struct Program {  // call-frame instructions [begin, end)
  uintptr_t begin;
  uintptr_t end;
};

struct Fde {
  uintptr_t pc_begin;
  uintptr_t pc_end;
  uint64_t code_align;
  int64_t data_align;
  uint64_t return_column;
  uint8_t pointer_encoding;
  bool augmented;     // augmentation 'z': the FDE, too, has augmentation data
  bool signal_frame;  // augmentation 'S': the caller was interrupted, it did not call
  Program initial;    // of the CIE
  Program own;
};

// The FDE that covers `pc`, by .eh_frame_hdr at `header` (0: the object has no
// such table). False: no FDE covers `pc`, or it cannot be used.
bool find_fde(const Bounds& bounds, uintptr_t header, uintptr_t pc, Fde* fde);

// Reads the entry at *at and advances *at to the next one, 0 at the end. False: the entry is no
// FDE, or an unusable one.
bool next_fde(const Bounds& bounds, uintptr_t* at, Fde* fde);

}  // namespace mtrace::cfi
