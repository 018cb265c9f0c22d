// System calls that end with EINTR after a stop although no signal was handled (signal(7),
// "Interruption of system calls and library functions by stop signals"), and how long the program
// wanted them to wait; and one that the kernel begins again with its whole limit. All others go on
// by themselves.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <cerrno>
#include <cstdint>
#include <optional>

#include "target/target_memory.h"

namespace mtrace::target {

// How a call is told its time limit.
enum class LimitKind : uint8_t {
  kNone,          // it waits until something happens
  kMilliseconds,  // an int in a register; negative: no limit
  kTimespec,      // a pointer in a register; null: no limit
  kUring,         // io_uring_enter's: a pointer to a struct with the pointer, if its flags say so
  kReceive,       // SO_RCVTIMEO of the socket in rdi
  kSend,          // SO_SNDTIMEO
};

// "Begin again unless a handler runs": what the kernel leaves in rax until the thread goes on.
inline constexpr int kRestartNoHandler = -514;

struct WaitingCall {
  uint64_t number;
  LimitKind kind;
  unsigned long long user_regs_struct::*limit;  // the register; null: none
  int on_timeout;  // the result when the limit is over, if the call cannot be asked for it
  int interrupted = -EINTR;  // its result at a stop: EINTR, or what makes it begin again as a whole
};

// Null: not one of them.
const WaitingCall* waiting_call(uint64_t number);

inline constexpr uint64_t kNoLimit = ~uint64_t{0};

// The limit of an interrupted call, nanoseconds; kNoLimit: it waits until something happens.
// Nothing: it cannot be told. `tid`: a thread of `pid` that this program traces.
std::optional<uint64_t> limit_of(const WaitingCall& call, const user_regs_struct& registers,
                                 const TargetMemory& memory, pid_t pid, pid_t tid);

// What io_uring_enter's last argument points to with IORING_ENTER_EXT_ARG.
struct UringArgument {
  uint64_t mask;
  uint64_t mask_size;
  uint64_t timespec;
};
inline constexpr uint64_t kUringArgumentFlag = 8;
// Its time is not relative, or its argument no pointer.
inline constexpr uint64_t kUringOtherFlags = 32 | 64;

}  // namespace mtrace::target
