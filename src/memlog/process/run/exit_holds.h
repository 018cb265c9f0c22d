// The processes of a run that wait for memlog to look at them (MTRACE_HOLD_EXIT).
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "model/ledger/ledger_file.h"
#include "model/ledger/ledger_requests.h"

namespace mtrace::process {

// The library's setting: "MTRACE_HOLD_EXIT=" and this process.
std::string exit_hold_setting();

class ExitHolds {
 public:
  // `ledgers`: the directory of the ledgers of the run. `after_exit`: processes wait again when
  // their exit handlers and destructors have run.
  ExitHolds(std::string ledgers, bool after_exit)
      : ledgers_(std::move(ledgers)), after_exit_(after_exit) {}

  using Look = std::function<void(pid_t, ledger::LedgerFile&, ledger::HoldPoint)>;
  // Calls `look` for each process that waits, and lets the process go on when it returns or throws.
  void serve(const Look& look);

 private:
  void find_ledgers();
  void serve_one(ledger::LedgerFile& ledger, ledger::HoldPoint point, const Look& look) const;

  std::string ledgers_;
  bool after_exit_;
  std::map<std::string, std::unique_ptr<ledger::LedgerFile>> known_;  // by path
};

}  // namespace mtrace::process
