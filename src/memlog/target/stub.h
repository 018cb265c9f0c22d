// The code that a borrowed thread of another process runs: it makes the calls that it finds in
// memory of its own and then goes back to what the thread was doing.
//
// It saves and restores all registers, the floating-point state and the signal mask itself, works
// on a stack of its own, and looks for a call each time round, after a second at the latest: when
// memlog is killed meanwhile, it finds none and the thread goes on as if nothing had been.
#pragma once

#include <cstdint>
#include <string>

namespace mtrace::target {

// The memory that the code maps for itself.
struct Scratch {
  static constexpr uint64_t kSize = 0x80000;
  static constexpr uint64_t kData = 0x8000;  // from here on memlog's, kDataSize bytes
  static constexpr uint64_t kDataSize = 0x18000;

  uint64_t function;  // what to call; 0: nothing more
  uint64_t arguments[3];
  uint64_t result;
  uint32_t returned;  // 1: it has
};

// Offsets into the code: of the instruction after the system call at which memlog finds the thread.
struct StubPlaces {
  uint64_t
      command;   // about to look for a call; r12 is the address of the scratch memory, or -errno
  uint64_t end;  // back on its own stack, all given back
};
const StubPlaces& stub_places();

// The code, which goes on at `resume`. Position-independent.
std::string stub_code(uint64_t resume);
// Whether that is the code, wherever it goes on.
bool is_stub_code(const std::string& bytes);

}  // namespace mtrace::target
