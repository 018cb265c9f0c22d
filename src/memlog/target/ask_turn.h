// The turn to ask a process for reports. One memlog at a time has it, so each report has the label
// of the one that asked for it, and none takes another's report for its own.
#pragma once

#include <sys/types.h>

#include <chrono>

namespace mtrace::target {

class AskTurn {
 public:
  // Waits for the turn until `deadline` at most. It is a lock on the process's directory in /proc,
  // so it ends with the process and with whoever holds it; where there can be none, all have it.
  // Who waits for several takes them in the order of their pids.
  AskTurn(pid_t pid, std::chrono::steady_clock::time_point deadline);
  ~AskTurn();
  AskTurn(const AskTurn&) = delete;
  AskTurn& operator=(const AskTurn&) = delete;

  bool held() const { return held_; }

 private:
  int directory_;
  bool held_ = false;
};

}  // namespace mtrace::target
