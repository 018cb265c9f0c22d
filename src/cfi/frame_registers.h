// The registers of one frame, and the step from a frame to its caller by a row of call-frame
// information. For rows without a packed rule; slow (microseconds), complete.
#pragma once

#include <cstdint>

#include "cfi/row.h"

namespace mtrace::unwind {

// The memory that saved registers are read from: the thread's own stack, or that of another
// process.
// No virtual functions: those need the C++ run-time library, which the library has not.
class FrameMemory {
 public:
  bool read(uintptr_t address, uintptr_t* value) {
    return reader_(this, address, sizeof *value, value);
  }
  // Reads 1, 2, 4 or 8 bytes, zero-extended. False: they cannot be read.
  bool read_sized(uintptr_t address, unsigned size, uintptr_t* value) {
    return reader_(this, address, size, value);
  }

 protected:
  using Reader = bool (*)(FrameMemory*, uintptr_t address, unsigned size, uintptr_t* value);
  explicit FrameMemory(Reader reader) : reader_(reader) {}

 private:
  Reader reader_;
};

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
