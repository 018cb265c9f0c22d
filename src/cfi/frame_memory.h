// The memory that saved registers are read from: the thread's own stack, or that of another
// process.
#pragma once

#include <cstdint>

namespace mtrace::unwind {

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

}  // namespace mtrace::unwind
