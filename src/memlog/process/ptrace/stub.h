// The code that a borrowed thread of another process runs: it makes the calls that it finds in its
// own scratch memory, then returns to what the thread was doing.
//
// All registers and the floating-point state are saved and restored, all signals blocked, and the
// code works on its own stack. It looks for a call in each iteration, at least once a second. When
// memlog is killed meanwhile, the code finds none, sets the signal mask that it was given, and the
// thread continues as if nothing had happened. On x86_64 the code itself saves what is to come
// back; on aarch64, where no jump goes to an address in memory, it returns as a signal handler
// does, with a frame that memlog has put on the thread's stack.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "process/inspect/target_memory.h"
#include "process/ptrace/tasks.h"

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
// The code has these numbers.
static_assert(Scratch::kSize == 0x80000);
static_assert(offsetof(Scratch, arguments) == 8 && offsetof(Scratch, result) == 32 &&
              offsetof(Scratch, returned) == 40);

// Offsets into the code: of the instruction after each system call at which memlog finds the
// thread.
struct StubPlaces {
  uint64_t command;  // about to look for a call; stub_scratch() is there
  uint64_t end;      // back on the thread's own stack; all signals are still blocked
};
const StubPlaces& stub_places();

// Bytes below a thread's stack pointer that must be there.
extern const uint64_t kStubRoom;

// What a stopped thread is given to run the code.
struct StubStart {
  user_regs_struct registers;
  std::string code;       // position-independent; stub_size() bytes
  uint64_t frame_at = 0;  // on the thread's stack
  std::string frame;      // to be written there
  uint32_t vector_set = 0;
  std::string vectors;  // the set's content, where the code does not restore it
};
// `before`: the thread's registers. `mask`: its signal mask (bit n - 1: signal n). `code`: the
// address that the code is to have.
StubStart stub_start(pid_t tid, const user_regs_struct& before, uint64_t mask, uint64_t code);
size_t stub_size();
// Returns whether `bytes` are this code, with any `before` and `mask`.
bool is_stub_code(const std::string& bytes);

// The address of the scratch memory, or -errno.
uint64_t stub_scratch(const user_regs_struct& registers);
// Returns whether a thread that has stopped at a system call is about to make it.
bool enters_call(const user_regs_struct& registers);
// Makes a thread continue at `address`, in no system call.
void go_to(uint64_t address, user_regs_struct* registers);
// Where the kernel will continue a thread's call by restart_syscall(2), but does not show it in the
// registers yet: brings the thread there, and changes `before` accordingly. Throws AttachError.
void show_restart(Tasks& tasks, const TargetMemory& memory, pid_t tid, user_regs_struct* before,
                  Clock::time_point deadline);

}  // namespace mtrace::process
