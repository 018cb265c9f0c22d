// Decides whether a stopped thread is at a safe point: outside the allocator, the loader and fork,
// and so without any of their locks. It may then stay stopped while another thread loads a library.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <optional>
#include <string>
#include <vector>

#include "process/inspect/target_memory.h"
#include "process/inspect/target_objects.h"
#include "process/ptrace/restarts.h"
#include "process/ptrace/stack_walk.h"

namespace mtrace::process {

class SafePoints {
 public:
  // `restarts` must outlive this.
  SafePoints(const TargetMemory& memory, std::vector<Object> objects, const Restarts& restarts);
  SafePoints(const SafePoints&) = delete;
  SafePoints& operator=(const SafePoints&) = delete;

  // Returns the function that a stopped thread is inside ("malloc of libc.so.6"), found by
  // unwinding its stack; nothing: it is at a safe point. Call forget_stacks() first if threads have
  // run since.
  std::optional<std::string> inside(pid_t tid);
  void forget_stacks() { walk_.forget_stacks(); }

  // How surely a stopped thread that is at a safe point holds no lock of an allocator whose
  // functions have names that nobody knows. In order.
  enum class Calm {
    kWaits,   // for input, a connection, a child: allocators do not
    kSleeps,  // or waits on a condition
    kUnknown,
  };
  Calm calm(pid_t tid);

  const std::vector<Object>& objects() const { return objects_; }

 private:
  // Calls visit(address, object) for each frame of the thread with these registers, innermost
  // first, until it returns true. `object`: as StackWalk::object().
  template <typename Visit>
  void visit_frames(user_regs_struct registers, const Visit& visit);

  const TargetMemory& memory_;
  std::vector<Object> objects_;
  const Restarts& restarts_;
  StackWalk walk_;
};

}  // namespace mtrace::process
