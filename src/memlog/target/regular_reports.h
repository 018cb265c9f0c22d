// Reports every so often (memlog run and attach, --every): each process is asked again and again,
// by the gentlest way there is (report_channels.h), and nothing that happens to it meanwhile, an
// end or another program, is an error.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "live/ledger_file.h"
#include "target/process.h"

namespace mtrace::target {

class RegularReports {
 public:
  // Withdraws what was not answered.
  ~RegularReports();
  // Asks each of them. Those that have a ledger answer at their next operation; one that has done
  // something since its last report, and then nothing for a second, has a thread borrowed. Those
  // that cannot be asked now are passed over. Returns after a second a process, at the latest.
  // False: none of them is traced any more. Throws nothing.
  bool ask(const std::vector<pid_t>& pids) noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  // What is known of a process with a ledger.
  struct Known {
    explicit Known(pid_t pid) : handle(pid) {}
    ProcessHandle handle;
    std::unique_ptr<live::LedgerFile> ledger;
    bool asked = false;
    Clock::time_point when;         // of the question
    uint32_t seq = 0;               // of its last report at that time
    uint64_t operations = 0;        // that it had made by then
    uint64_t covered = UINT64_MAX;  // operations that its last report has, at least
  };

  bool ask_one(pid_t pid);
  bool look_again(Known& known) const;
  void ask_ledger(pid_t pid, Known& known);

  std::map<pid_t, Known> known_;
};

}  // namespace mtrace::target
