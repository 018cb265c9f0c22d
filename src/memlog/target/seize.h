// Beginning to trace the threads of a process that may be executing another program.
#pragma once

#include <signal.h>
#include <sys/types.h>
#include <time.h>

#include <functional>

namespace mtrace::target {

// PTRACE_SEIZE waits for an exec that the process is at; the exec waits until the other threads,
// which it ends, have been waited for; and their tracer is this program, inside PTRACE_SEIZE. So
// `reap` is called then, every few milliseconds, in a handler of SIGALRM. One object at a time.
class Seizing {
 public:
  // `reap` must be async-signal-safe but for what it reads and only the caller of seize() changes.
  explicit Seizing(std::function<void()> reap);
  ~Seizing();
  Seizing(const Seizing&) = delete;
  Seizing& operator=(const Seizing&) = delete;

  // 0, or an errno.
  int seize(pid_t tid, unsigned long options);

 private:
  std::function<void()> reap_;
  struct sigaction before_ = {};
  timer_t timer_ = nullptr;
  bool armed_ = false;
};

}  // namespace mtrace::target
