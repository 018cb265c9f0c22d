// Holds the threads of a process by ptrace: stops them, lets them run, releases them.
//
// While it exists, this program blocks SIGCHLD and the signals that would end it. Only one object
// at a time.
#pragma once

#include <signal.h>
#include <sys/types.h>
#include <sys/user.h>
#include <time.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "process/inspect/process.h"
#include "process/ptrace/restarts.h"

namespace mtrace::process {

using Clock = std::chrono::steady_clock;

class Seizing;

class Tasks {
 public:
  // `restarts` must outlive this.
  Tasks(pid_t pid, Restarts& restarts);
  // Releases all threads: running, or stopped if job control had stopped the process.
  ~Tasks();
  Tasks(const Tasks&) = delete;
  Tasks& operator=(const Tasks&) = delete;

  // Stops all threads, including new ones. Returns false when a thread did not stop in time, or the
  // process is gone; see trouble(). Throws AttachError when the process may not be traced.
  bool stop_all(Clock::time_point deadline);
  // Like stop_all(), for threads that were let run.
  bool stop(const std::vector<pid_t>& tids, Clock::time_point deadline);
  void resume(const std::vector<pid_t>& tids);
  // Resumes all threads but this one.
  void resume_others(pid_t tid);

  // Returns the stopped threads, the first thread of the process in front.
  std::vector<pid_t> stopped() const;
  bool any_running() const;
  const std::string& trouble() const { return trouble_; }
  // When the longest-stopped thread was stopped.
  Clock::time_point stopped_since() const { return since_; }

  static bool registers(pid_t tid, user_regs_struct* registers);
  static bool set_registers(pid_t tid, const user_regs_struct& registers);
  // 0: unknown.
  static uint64_t thread_pointer(pid_t tid, const user_regs_struct& registers);
  // Of a stopped thread; bit n - 1: signal n is blocked. In a call with a mask of its own
  // (sigsuspend, ppoll), the mask that the thread has outside of it.
  static bool signal_mask(pid_t tid, uint64_t* mask);
  static bool set_signal_mask(pid_t tid, uint64_t mask);

  // Holds the next process that a stopped thread makes by clone(2) before it runs; cloned() is its
  // pid. `on` false: no longer.
  void hold_clones(pid_t tid, bool on);
  pid_t cloned() const { return cloned_; }
  // A register set of a stopped thread as ptrace(2) gives it; empty: the processor has none such.
  static std::string register_set(pid_t tid, uint32_t set);
  // All words of a stopped thread's vector and floating-point registers.
  static std::vector<uint64_t> vector_registers(pid_t tid);
  static bool set_vectors(pid_t tid, uint32_t set, const std::string& content);

  // Runs a stopped thread until it enters or leaves a system call. Returns false when it has ended.
  // Throws AttachError at the deadline.
  bool run_to_system_call(pid_t tid, Clock::time_point deadline);
  // Delivers signals to running threads. Without it, a thread that gets a signal would stay
  // stopped.
  void hand_over_signals();
  // Brings a thread to a stop at which its registers can be set so that an interrupted system call
  // continues. Returns false when it has ended.
  bool interrupt(pid_t tid, Clock::time_point deadline);

 private:
  enum class State { kRunning, kStopped, kGone };
  // Returns false when the thread is ending.
  bool seize(pid_t tid, Seizing& seizing);
  bool release(pid_t tid);
  bool wait_for(pid_t tid, Clock::time_point deadline, int* status);
  Clock::time_point cut_short(Clock::time_point deadline);
  bool reap_ended();
  bool wait_stopped(pid_t tid, Clock::time_point deadline);
  void settle(pid_t tid);
  pid_t take_status(pid_t tid, int* status) const;
  void take_event(pid_t tid, int status);

  pid_t pid_;
  Restarts& restarts_;
  bool own_child_;  // a child of this program: its end is waited for elsewhere
  std::map<pid_t, State> tasks_;
  std::string trouble_;
  pid_t cloned_ = 0;
  Clock::time_point since_;
  std::optional<Clock::time_point> interruption_;
  sigset_t mask_;  // from before; so is the priority
  int priority_;
};

// Begins to trace threads of a process that may be in an exec.

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

// Threads that did not stop in time to be released. This program stays their tracer, and would hold
// them for ever once they do stop: a program that runs for long looks after them.

// Notes a thread of `pid` that this program traces and that runs.
void release_later(pid_t pid, pid_t tid);

// Releases those that have stopped meanwhile. To be called when SIGCHLD has come, which announces
// their stop, or from time to time.
void release_late();

}  // namespace mtrace::process
