// The threads of a process, held by ptrace: stopped, let run, and given back.
//
// While it holds a process, this program blocks the signals that would end it, and SIGCHLD. One at
// a time.
#pragma once

#include <signal.h>
#include <sys/types.h>
#include <sys/user.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "target/restarts.h"
#include "target/task_list.h"

namespace mtrace::target {

using Clock = std::chrono::steady_clock;

class Seizing;

class Tasks {
 public:
  // `restarts`: lives longer.
  Tasks(pid_t pid, Restarts& restarts);
  // Gives all threads back, running or as the program's own job control has them.
  ~Tasks();
  Tasks(const Tasks&) = delete;
  Tasks& operator=(const Tasks&) = delete;

  // Stops all threads, those too that come meanwhile. False: one did not stop in time, or the
  // process is gone; see trouble(). Throws AttachError when it may not be traced.
  bool stop_all(Clock::time_point deadline);
  // The same for some of them that were let run.
  bool stop(const std::vector<pid_t>& tids, Clock::time_point deadline);
  void resume(const std::vector<pid_t>& tids);
  // All but this one.
  void resume_others(pid_t tid);

  // Stopped threads, the first one of the process in front.
  std::vector<pid_t> stopped() const;
  bool any_running() const;
  const std::string& trouble() const { return trouble_; }
  // When the first of the threads was stopped that still is.
  Clock::time_point stopped_since() const { return since_; }

  static bool registers(pid_t tid, user_regs_struct* registers);
  static bool set_registers(pid_t tid, const user_regs_struct& registers);

  // Lets a stopped thread run to where it enters or leaves a system call. False: it has ended.
  // Throws AttachError when it has not come there in time.
  bool run_to_system_call(pid_t tid, Clock::time_point deadline);
  // Of threads that run: without it one that gets a signal would stay stopped.
  void hand_over_signals();
  // From wherever it is, to a stop at which registers can be set so that an interrupted system call
  // goes on. False: it has ended.
  bool interrupt(pid_t tid, Clock::time_point deadline);

 private:
  enum class State { kRunning, kStopped, kGone };
  // False: it is at its end.
  bool seize(pid_t tid, Seizing& seizing);
  bool wait_for(pid_t tid, Clock::time_point deadline, int* status);
  bool reap_ended();
  bool wait_stopped(pid_t tid, Clock::time_point deadline);
  void settle(pid_t tid);
  pid_t take_status(pid_t tid, int* status) const;

  pid_t pid_;
  Restarts& restarts_;
  bool own_child_;  // of this program, which waits for its end elsewhere
  std::map<pid_t, State> tasks_;
  std::string trouble_;
  Clock::time_point since_;
  sigset_t mask_;  // before, and so the priority
  int priority_;
};

}  // namespace mtrace::target
