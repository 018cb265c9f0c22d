// The registers of one frame, and the step from a frame to its caller by a row of call-frame
// information. For rows without a packed rule; slow (microseconds), complete.
#pragma once

#include <cstdint>

#include "cfi/frame_memory.h"
#include "cfi/row.h"

namespace mtrace::unwind {

struct FrameRegisters {
  uintptr_t registers[kRegisters];  // by DWARF number; kPc is the pc
  uint64_t known;                   // bit i: registers[i] is valid

  bool has(unsigned reg) const { return reg < kRegisters && (known >> reg & 1) != 0; }
  void set(unsigned reg, uintptr_t value) {
    registers[reg] = value;
    known |= uint64_t{1} << reg;
  }
};

enum class Step : uint8_t {
  kCaller,
  kGuess,  // a caller that was guessed
  kBottom,
  kLost,
};

// Turns the registers of the frame that `row` describes into those of its caller.
Step step_by_row(const Bounds& bounds, const Row& row, FrameRegisters* machine,
                 FrameMemory* memory);

}  // namespace mtrace::unwind
