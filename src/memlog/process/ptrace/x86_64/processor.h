// System calls that a stop makes fail with EINTR although no signal was handled (signal(7),
// "Interruption of system calls and library functions by stop signals"), with their time limits;
// and one call that the kernel restarts with its whole limit. All other calls continue by
// themselves.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include "process/inspect/target_objects.h"
#include "util/prelude.h"

namespace mtrace::process {

// How a call receives its time limit.
enum class LimitKind : uint8_t {
  kNone,          // no limit: it waits until something happens
  kMilliseconds,  // an int in a register; negative: no limit
  kTimespec,      // a pointer in a register; null: no limit
  kUring,         // io_uring_enter: a pointer to a struct with the pointer, if its flags say so
  kReceive,       // SO_RCVTIMEO of the socket in rdi
  kSend,          // SO_SNDTIMEO
};

// "Restart unless a handler runs": the kernel's value in rax until the thread continues.
inline constexpr int kRestartNoHandler = -514;

// "Go on by restart_syscall(2)": with the time that is left, in the kernel's own hands. A seccomp
// filter may kill the thread at that call.
inline constexpr int kRestartBlock = -516;

struct WaitingCall {
  uint64_t number;
  LimitKind kind;
  unsigned long long user_regs_struct::*limit;  // that holds it; null: none
  int on_timeout;  // the result at the end of the limit, where the call itself cannot return it
  int interrupted = -EINTR;  // its result at a stop: EINTR, or the value that restarts the whole
                             // call
};

// Returns nullptr when the call is not one of these.
const WaitingCall* waiting_call(uint64_t number);

inline constexpr uint64_t kNoLimit = ~uint64_t{0};

// Returns the limit of an interrupted call in nanoseconds; kNoLimit: it waits until something
// happens; nothing: the limit is unknown. `tid`: a thread of `pid` that this program traces.
std::optional<uint64_t> limit_of(const WaitingCall& call, const user_regs_struct& registers,
                                 const TargetMemory& memory, pid_t pid, pid_t tid);

// What the last argument of io_uring_enter points to, with IORING_ENTER_EXT_ARG.
struct UringArgument {
  uint64_t mask;
  uint64_t mask_size;
  uint64_t timespec;
};
inline constexpr uint64_t kUringArgumentFlag = 8;
// Flags with which the time is absolute, or the argument is no pointer.
inline constexpr uint64_t kUringOtherFlags = 32 | 64;

}  // namespace mtrace::process
