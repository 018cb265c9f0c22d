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

#include <signal.h>
#include <sys/types.h>
#include <sys/user.h>
#include <time.h>

#include <span>

#include "cfi/frame_registers.h"
#include "process/inspect/process.h"
#include "process/inspect/target_objects.h"
#include "util/prelude.h"

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

// Holds the threads of a process by ptrace: stops them, lets them run, releases them.
//
// While it exists, this program blocks SIGCHLD and the signals that would end it. Only one object
// at a time.

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

// What a stopped thread's registers say. Each processor has a file of its own with these functions.

// Puts all registers that a walk follows into `frame`.
void take_registers(const user_regs_struct& registers, cfi::FrameRegisters* frame);

// Returns the number of the system call that the thread is in, or will begin or begin again at
// once; negative: none.
int64_t current_call(const user_regs_struct& registers, const TargetMemory& memory);

// System calls that wait and that only this processor has.
extern const std::span<const int64_t> kOwnWaitingCalls;

}  // namespace mtrace::process
