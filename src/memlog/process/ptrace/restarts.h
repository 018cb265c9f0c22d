// Keeps the system calls of a stopped process from ending with EINTR because of the stop.
//
//   no time limit     The call begins again.
//   a time limit      The call continues in the restart code (below), with its limit less the
//                     time since the first stop that interrupted it. So it waits at most for its
//                     time before that stop plus the limit, however often the process is stopped.
//   a socket's limit  As above. But if another thread takes what the call had waited for, the call
//                     begins again with the whole limit. In a thread with a seccomp filter it
//                     always does. It then waits at most twice the limit longer.
//   restart_syscall   As above, for poll, nanosleep and futex in a thread whose seccomp
//                     filter could kill it at that call.
//   ppoll, pselect    The call begins again with the time that the kernel has written into its
//                     timespec, less the time that the thread was stopped.
//
// A call stays interrupted when its limit is unknown, or when there is no room on the thread's
// stack or in the process's code.
//
// This is x86_64's. On aarch64 such calls end with EINTR, as after any stop: the kernel does not
// tell what their first argument was, in whose register their result is.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <cstdint>
#include <map>
#include <set>

#include "process/inspect/target_memory.h"
#include "process/inspect/target_objects.h"

namespace mtrace::process {

struct RestartFrame;
struct WaitingCall;

class Restarts {
 public:
  // `cave`: executable memory that no thread runs. The code goes to its end and stays there.
  Restarts(pid_t pid, const TargetMemory& memory, Range cave);

  // Uses the library's own copy of the code at address `code`, which has call-frame information.
  // Threads in the cave's copy continue in the library's when they are let run.
  void use_library(uint64_t code);

  // Call it at each stop of the thread.
  void settle(pid_t tid);
  // Call it before the thread is let run: adjusts its limit to the time that has passed.
  void renew(pid_t tid);

  // Changes the registers of a thread in the code to those it will have after the code. Returns
  // false when it is about to leave the code, or is not in it.
  bool leave(user_regs_struct* registers) const;
  bool in_code(uint64_t address) const { return cave_.holds(address) || library_.holds(address); }

  static uint64_t code_size();

 private:
  bool begin(pid_t tid, user_regs_struct registers, const WaitingCall& call, uint64_t limit);
  bool go_on(pid_t tid, user_regs_struct registers);
  void shorten(const user_regs_struct& registers, uint64_t stopped) const;
  bool frame_of(const user_regs_struct& registers, RestartFrame* frame) const;
  uint64_t begin_of(uint64_t address) const;
  uint64_t install();
  bool write(uint64_t address, const void* data, size_t size) const;

  pid_t pid_;
  const TargetMemory& memory_;
  Range foreign_;  // the rest of the cave: the calls of a borrowed thread, which are not the
                   // program's
  Range cave_;
  Range library_;
  std::set<pid_t> in_frames_;          // threads that were in the code at some stop
  std::map<pid_t, uint64_t> stopped_;  // threads in ppoll and pselect: when they were stopped, by
                                       // CLOCK_MONOTONIC
};

}  // namespace mtrace::process
