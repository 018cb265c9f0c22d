// Keeps the system calls of a stopped process from ending with EINTR because of the stop.
//
// A call without a time limit begins again. One with a limit goes on in the code of restart_code.h,
// with its limit less the time since the first stop that interrupted it: so it waits at most for
// what it had waited before that, plus the limit, however often the process is stopped. On a socket
// with a limit, a call for which there was something that another thread then took begins again
// with the socket's limit, and so does any in a thread with a filter of system calls: at most twice
// the limit longer. ppoll and pselect begin again with
// what the kernel has written into their timespec; the time that the thread was stopped for is
// taken off it. A call stays interrupted when its limit
// cannot be told, or the thread's stack or the process's code has no room.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <map>
#include <set>

#include "target/object.h"
#include "target/restart_code.h"
#include "target/target_memory.h"

namespace mtrace::target {

class Restarts {
 public:
  // `cave`: executable memory that nobody runs; the code goes to its end and stays.
  Restarts(pid_t pid, const TargetMemory& memory, Range cave);

  // The library's own, which threads use from then on: it has call-frame information. Those that
  // are in the cave's go on there when they are let run.
  void use_library(uint64_t code);

  // At a stop of the thread.
  void settle(pid_t tid);
  // Before it is let run: its time has gone on.
  void renew(pid_t tid);

  // Turns registers of a thread in the code into those that it will have behind it. False: it is
  // about to leave the code, or not in it.
  bool leave(user_regs_struct* registers) const;
  bool in_code(uint64_t address) const { return cave_.holds(address) || library_.holds(address); }

  static uint64_t code_size() { return restart_code().size(); }

 private:
  void begin(pid_t tid, user_regs_struct registers, const WaitingCall& call, uint64_t limit);
  bool go_on(pid_t tid, user_regs_struct registers);
  void shorten(const user_regs_struct& registers, uint64_t stopped) const;
  bool frame_of(const user_regs_struct& registers, RestartFrame* frame) const;
  uint64_t begin_of(uint64_t address) const;
  uint64_t install();
  bool write(uint64_t address, const void* data, size_t size) const;

  pid_t pid_;
  const TargetMemory& memory_;
  Range foreign_;  // the rest of the cave: a borrowed thread's calls are not the program's
  Range cave_;
  Range library_;
  std::set<pid_t> in_frames_;          // threads that were in the code at some stop
  std::map<pid_t, uint64_t> stopped_;  // CLOCK_MONOTONIC, threads in ppoll and pselect
};

}  // namespace mtrace::target
