// Asks processes for reports at regular intervals (memlog run and attach, --every). Uses the
// gentlest way available (report_channels.h). A process that ends or executes another program is no
// error.
#pragma once

#include <sys/types.h>

#include "model/ledger/ledger_file.h"
#include "process/inspect/process.h"
#include "util/prelude.h"

namespace mtrace::process {

class RegularReports {
 public:
  // Is told of the report `seq` that `pid` has written without names, and is to fill them in.
  using Named = std::function<void(pid_t pid, uint32_t seq, const std::string& path)>;

  explicit RegularReports(Named named) : named_(std::move(named)) {}
  ~RegularReports() { finish(); }
  // Withdraws unanswered requests, and tells of the last reports.
  void finish() noexcept;
  // Asks each process for a report. A process with a ledger answers at its next operation. If it
  // has worked since its last report and then does nothing for a second, one of its threads is
  // borrowed. Skips processes that cannot be asked now. Takes at most a second per process. Returns
  // false when none of the processes is traced any more.
  bool ask(const std::vector<pid_t>& pids) noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  // What became of the last request to a ledger.
  enum class Request { kNone, kAnswered, kOpen, kOverdue };
  // What became of a process that was to be asked.
  enum class Fate { kNotTraced, kLeftAlone, kAsked };
  // A known process with a ledger.
  struct Known {
    explicit Known(pid_t pid) : handle(pid) {}
    ProcessHandle handle;
    std::unique_ptr<ledger::LedgerFile> ledger;
    bool asked = false;
    Clock::time_point when;         // time of the last request
    uint32_t seq = 0;               // last report at that time
    uint64_t operations = 0;        // operations made by that time
    uint64_t covered = UINT64_MAX;  // operations that the last report covers, at least
    bool names = false;             // this process finds the files that the other one names
    uint32_t named = 0;             // last report whose names were left and that was told of

    Request request() const;
  };

  Fate ask_one(pid_t pid);
  void settle(pid_t pid, Known& known) const noexcept;
  void tell_of_unnamed(pid_t pid, Known& known) const;
  bool look_again(Known& known) const;
  void ask_ledger(pid_t pid, Known& known);

  Named named_;
  std::map<pid_t, Known> known_;
};

}  // namespace mtrace::process
