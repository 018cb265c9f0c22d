// The code that a borrowed thread of another process runs: it makes the calls that it finds in its
// own scratch memory, then returns to what the thread was doing.
//
// The code saves and restores all registers and the floating-point state, blocks all signals, and
// works on its own stack. It looks for a call in each iteration, at least once a second. When
// memlog is killed meanwhile, the code finds none, sets the signal mask that it was given, and the
// thread continues as if nothing had happened.
#pragma once

#include <cstdint>
#include <string>

namespace mtrace::process {

// The memory that the code maps for itself.
struct Scratch {
  static constexpr uint64_t kSize = 0x80000;
  static constexpr uint64_t kData = 0x8000;  // memlog's part begins here, kDataSize bytes
  static constexpr uint64_t kDataSize = 0x18000;

  uint64_t function;  // to call; 0: end
  uint64_t arguments[3];
  uint64_t result;
  uint32_t returned;  // 1: the call has returned
};

// Offsets into the code: of the instruction after each system call at which memlog finds the
// thread.
struct StubPlaces {
  uint64_t
      command;   // about to look for a call; r12 is the address of the scratch memory, or -errno
  uint64_t end;  // back on the thread's own stack; all signals are still blocked
};
const StubPlaces& stub_places();

// Returns the code, which ends by setting the signal mask `mask` (bit n - 1: signal n) and a jump
// to `resume`. Position-independent.
std::string stub_code(uint64_t resume, uint64_t mask);
// Returns whether `bytes` are this code, with any `resume` and `mask`.
bool is_stub_code(const std::string& bytes);

}  // namespace mtrace::process
