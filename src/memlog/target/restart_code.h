// Code in which a thread of another process continues a system call that a stop has interrupted,
// for the rest of its time limit. The thread then continues after the call with all of the
// program's registers, so the program never sees the changed argument.
//
// All data of the code is on the thread's stack. So threads may stay in the code after memlog has
// ended, and a later memlog finds there when the call must end.
#pragma once

#include <poll.h>

#include <cstdint>
#include <ctime>
#include <string>

#include "target/waiting_call.h"

namespace mtrace::target {

// What the stack pointer of a thread in the code points to.
struct RestartFrame {
  static constexpr uint64_t kMagic = 0x7472617473657231;
  static constexpr uint64_t kRedZone = 128;  // bytes below the stack pointer that may be in use

  uint64_t magic;
  // The program's registers after the call.
  uint64_t rip, rsp, rdi, rsi, rdx, r10, r8, r9, flags;
  uint64_t number;      // of the system call
  int64_t on_timeout;   // result of the call when the poll made in its place finds nothing
  uint64_t limit;       // nanoseconds, from the program
  uint64_t deadline;    // nanoseconds of CLOCK_MONOTONIC
  timespec left;        // the time given to the kernel
  UringArgument uring;  // points to `left`
  pollfd poll;          // without events: make the call at once, with its whole limit
};

// Offsets into the code: of the instruction after each of its three system calls.
struct RestartPlaces {
  uint64_t direct;  // the program's call with a shorter limit
  uint64_t polled;  // ppoll for the rest of the limit, for a call on a socket with a limit
  uint64_t called;  // that call, once the socket is ready
};
const RestartPlaces& restart_places();

// The code, position-independent.
const std::string& restart_code();

}  // namespace mtrace::target
