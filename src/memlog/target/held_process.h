// A process all of whose threads are stopped at safe points, until the end of this object's life.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "target/borrowed_thread.h"
#include "target/object.h"
#include "target/restarts.h"
#include "target/safe_point.h"
#include "target/target_memory.h"
#include "target/tasks.h"

namespace mtrace::target {

class HeldProcess {
 public:
  // `objects`: what the process has mapped. `cave`: see Restarts. Throws AttachError when it may
  // not be traced.
  HeldProcess(pid_t pid, std::vector<Object> objects, Range cave);

  // Stops all threads; while one is inside the allocator or the loader, lets it run and looks
  // again. `borrowed`: a stopped thread that is left out of this, 0: none. Throws AttachError at
  // the deadline.
  void stop(Clock::time_point deadline, pid_t borrowed = 0);

  Tasks& tasks() { return tasks_; }
  TargetMemory& memory() { return memory_; }
  Restarts& restarts() { return restarts_; }
  // A thread with room on its stack for the registers that are saved there.
  pid_t lender() const;

 private:
  // What each thread that is not at a safe point is inside of.
  struct Unsafe {
    pid_t tid;
    std::string inside;
  };
  std::vector<Unsafe> unsafe(std::vector<pid_t> tids, pid_t borrowed);
  // The few that are not there are let run for moments while the others wait.
  std::vector<Unsafe> nudge(std::vector<Unsafe> unsafe, Clock::time_point deadline, pid_t borrowed);

  pid_t pid_;
  TargetMemory memory_;
  Restarts restarts_;
  SafePoints points_;
  Tasks tasks_;
};

// The file-backed executable mappings of a process, as text to compare.
std::string executable_mappings(pid_t pid);

}  // namespace mtrace::target
