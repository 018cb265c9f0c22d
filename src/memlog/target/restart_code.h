// Code in which a thread of another process waits on in a call that a stop has interrupted: for
// what is left of the call's time limit. Then it goes on behind the call with all the program's
// registers, so nobody sees that the argument was another for a while.
//
// What it needs lies on the thread's stack. So threads may stay in the code when memlog has ended,
// and a later memlog finds there when the call must end.
#pragma once

#include <poll.h>

#include <cstdint>
#include <ctime>
#include <string>

#include "target/waiting_call.h"

namespace mtrace::target {

// Where the stack pointer of a thread in the code points to.
struct RestartFrame {
  static constexpr uint64_t kMagic = 0x7472617473657231;
  static constexpr uint64_t kRedZone = 128;  // bytes below the stack pointer that may be in use

  uint64_t magic;
  // The program's, as the call left them.
  uint64_t rip, rsp, rdi, rsi, rdx, r10, r8, r9, flags;
  uint64_t number;      // of the call
  int64_t on_timeout;   // what the call returns when a poll in its place has found nothing
  uint64_t limit;       // nanoseconds, as the program gave it
  uint64_t deadline;    // nanoseconds of CLOCK_MONOTONIC
  timespec left;        // what the kernel is given
  UringArgument uring;  // points to `left`
  pollfd poll;          // without events: the call is made at once, with its whole limit
};

// Offsets into the code: of the instructions after its three system calls.
struct RestartPlaces {
  uint64_t direct;  // the program's call, with another limit
  uint64_t polled;  // ppoll for the rest of the limit, for a call on a socket with a limit
  uint64_t called;  // that call, when there is something for it
};
const RestartPlaces& restart_places();

// Position-independent.
const std::string& restart_code();

}  // namespace mtrace::target
