// Whether a stopped thread may be left where it is while another one loads a library: it is inside
// neither the allocator nor the loader, nor in a fork, and so holds none of their locks.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "target/object.h"
#include "target/restarts.h"
#include "target/target_memory.h"

namespace mtrace::target {

class SafePoints {
 public:
  // `restarts`: lives longer.
  SafePoints(const TargetMemory& memory, std::vector<Object> objects, const Restarts& restarts);
  ~SafePoints();

  // What a stopped thread is inside of ("malloc of libc.so.6"), found by unwinding its stack;
  // nothing: it is at a safe point. Threads that were let run since: forget_stacks() before.
  std::optional<std::string> inside(pid_t tid);
  void forget_stacks();

  const std::vector<Object>& objects() const { return objects_; }

 private:
  struct Walker;
  std::vector<Object> objects_;
  const Restarts& restarts_;
  std::unique_ptr<Walker> walker_;
};

}  // namespace mtrace::target
