// Holds all threads of a process stopped at safe points, for the lifetime of the object.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "process/inspect/target_memory.h"
#include "process/inspect/target_objects.h"
#include "process/ptrace/borrowed_thread.h"
#include "process/ptrace/restarts.h"
#include "process/ptrace/safe_point.h"
#include "process/ptrace/tasks.h"

namespace mtrace::process {

class HeldProcess {
 public:
  // `objects`: the files that the process has mapped. `cave`: see Restarts. Throws AttachError when
  // the process may not be traced.
  HeldProcess(pid_t pid, std::vector<Object> objects, Range cave);

  // Stops all threads. While a thread is inside the allocator or the loader, lets it run and tries
  // again. `borrowed`: a stopped thread to leave out; 0: none. Throws AttachError at the deadline.
  void stop(Clock::time_point deadline, pid_t borrowed = 0);

  Tasks& tasks() { return tasks_; }
  TargetMemory& memory() { return memory_; }
  Restarts& restarts() { return restarts_; }
  // Returns a thread whose stack has room for the saved registers, if possible one that waits in a
  // system call. `calm`: only such a one; 0: there is none. Throws AttachError when no stack has
  // room.
  pid_t lender(bool calm);
  // Stops all threads as above, until one of them waits in a system call and can be lent. Throws
  // AttachError at the deadline; `why` says what such a thread is needed for, as a sentence without
  // subject.
  pid_t stop_with_calm_lender(Clock::time_point deadline, const std::string& why);

 private:
  // A thread that is not at a safe point, and the function it is inside.
  struct Unsafe {
    pid_t tid;
    std::string inside;
  };
  std::vector<Unsafe> unsafe(std::vector<pid_t> tids, pid_t borrowed);
  // Lets these threads run for moments while all others wait. Returns those still not at a safe
  // point.
  std::vector<Unsafe> nudge(std::vector<Unsafe> unsafe, Clock::time_point deadline, pid_t borrowed);

  pid_t pid_;
  TargetMemory memory_;
  Restarts restarts_;
  SafePoints points_;
  Tasks tasks_;
};

// Returns the file-backed executable mappings of a process, as text for comparison.
std::string executable_mappings(pid_t pid);

}  // namespace mtrace::process
