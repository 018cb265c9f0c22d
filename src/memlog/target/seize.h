// Begins to trace threads of a process that may be in an exec.
#pragma once

#include <signal.h>
#include <sys/types.h>
#include <time.h>

#include <functional>

namespace mtrace::target {

// Wraps PTRACE_SEIZE to avoid a deadlock. PTRACE_SEIZE waits for an exec of the process. The exec
// ends the other threads and waits until their tracer has waited for them. That tracer is this
// program, which is inside PTRACE_SEIZE. So a signal handler calls `reap` every few milliseconds
// meanwhile, also where signals are blocked. Only one object at a time.
class Seizing {
 public:
  // `reap` must be async-signal-safe, except that it may read data that only the caller of seize()
  // changes.
  explicit Seizing(std::function<void()> reap);
  ~Seizing();
  Seizing(const Seizing&) = delete;
  Seizing& operator=(const Seizing&) = delete;

  // Returns 0 or an errno.
  int seize(pid_t tid, unsigned long options);

 private:
  std::function<void()> reap_;
  struct sigaction before_ = {};
  sigset_t mask_ = {};
  timer_t timer_ = nullptr;
  bool armed_ = false;
};

}  // namespace mtrace::target
