// The turn to ask a process for reports. Only one memlog at a time has it. So each report carries
// the label of the memlog that asked for it, and no memlog takes another's report for its own.
#pragma once

#include <sys/types.h>

#include <chrono>

namespace mtrace::target {

class AskTurn {
 public:
  // Waits for the turn, at most until `deadline`. The turn is a lock on the process's directory in
  // /proc, so it ends with the process and with its holder. Where no lock is possible, every memlog
  // has the turn. To avoid deadlock, take the turns of several processes in the order of their
  // pids.
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
