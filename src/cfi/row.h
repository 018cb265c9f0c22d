// Interprets call-frame instructions (DWARF 5, section 6.4.2, and the GNU extensions) into the row
// of rules that holds at one address. Async-signal-safe.
#pragma once

#include <cstdint>

#include "cfi/cursor.h"
#include "cfi/registers.h"

namespace mtrace::cfi {

// ---- The frame description entry (FDE) of an address, from .eh_frame.
// Formats: Linux Standard Base Core, "Exception Frames" (.eh_frame, .eh_frame_hdr) and DWARF 5,
// section 6.4.1. Nothing outside the object's bounds is read, and every loop is bounded by them,
// whatever the bytes say. Async-signal-safe.

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

enum class SavedBy : uint8_t {
  kUnspecified = 0,  // no rule: the value is unchanged
  kUndefined = 1,
  kSameValue = 2,
  kOffset = 3,         // at CFA + value
  kValOffset = 4,      // is CFA + value
  kRegister = 5,       // in register `value`
  kExpression = 6,     // at the address that the expression yields
  kValExpression = 7,  // is what the expression yields
};

// Expressions are kept as the distance from Row::origin to their uleb length. One word, because
// several rows lie on the stack of the program's thread.
struct RegisterRule {
  SavedBy how : 3;
  int32_t value : 29;
};
static_assert(sizeof(RegisterRule) == 4);

// The rules at one place, as DW_CFA_remember_state remembers them.
struct RowState {
  bool cfa_by_expression;
  uint8_t cfa_register;
  int64_t cfa_offset;  // or the expression's distance
  RegisterRule rules[kRegisters];
};

struct Row : RowState {
  uintptr_t origin;
  bool signal_frame;
};

// The row at `pc`, which `fde` covers. False when the program is malformed, or uses a register,
// an offset or a depth of remembered states that a Row cannot hold.
bool find_row(const Bounds& bounds, const Fde& fde, uintptr_t pc, Row* row);

}  // namespace mtrace::cfi
