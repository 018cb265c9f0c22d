// The processes of a run that wait at their exit for memlog to look at them (MTRACE_HOLD_EXIT).
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "live/ledger_file.h"

namespace mtrace::target {

// The library's setting: "MTRACE_HOLD_EXIT=" and this process.
std::string exit_hold_setting();

class ExitHolds {
 public:
  // `ledgers`: the directory of the ledgers of the run.
  explicit ExitHolds(std::string ledgers) : ledgers_(std::move(ledgers)) {}

  // Calls `look` for each process that waits, and lets the process go on when it returns or throws.
  void serve(const std::function<void(pid_t, live::LedgerFile&)>& look);

 private:
  void find_ledgers();

  std::string ledgers_;
  std::map<std::string, std::unique_ptr<live::LedgerFile>> known_;  // by path
};

}  // namespace mtrace::target
