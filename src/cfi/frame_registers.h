// The registers of one frame, and the step from a frame to its caller by a row of call-frame
// information. For rows without a packed rule; slow (microseconds), complete.
#pragma once

#include <cstdint>

#include "cfi/row.h"

namespace mtrace::cfi {

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

// Evaluates the DWARF expression whose uleb length stands at `place`; `initial`, when not null, is
// pushed first. False: malformed, too long, an operation without meaning here, an unknown
// register, or unreadable memory. Source: DWARF 5, sections 2.5 and 6.4.2.
bool evaluate(const Bounds& bounds, uintptr_t place, const uintptr_t* initial,
              const FrameRegisters& machine, FrameMemory* memory, uintptr_t* result);

}  // namespace mtrace::cfi

// Where the kernel saves an interrupted thread's registers, from the stack pointer at the first
// instruction of the signal trampoline: kSignalFp, kSignalSp, kSignalPc. Part of the kernel's ABI.
// is_signal_return() reads code by `read(address, to, size)`, which returns false where it cannot.
#ifdef __x86_64__
#include "cfi/x86_64/kernel_frame.h"
#else
#include "cfi/aarch64/kernel_frame.h"
#endif
