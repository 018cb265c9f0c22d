// A process that can be asked for a report, as far as this program sees it: through its status
// block, or, where its memory may not be read (an ordinary user, kernel.yama.ptrace_scope), through
// its ledger alone.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "live/ledger_file.h"
#include "target/process.h"
#include "target/traced.h"

namespace mtrace::target {

class AskedProcess {
 public:
  // Nothing: it cannot be asked, and `why` says why, as a sentence without subject or period.
  static std::optional<AskedProcess> find(pid_t pid, std::string& why);

  // One that is about to become another program is waited for until it has, or has not.
  static std::optional<AskedProcess> find_settled(pid_t pid,
                                                  std::chrono::steady_clock::time_point deadline,
                                                  std::string& why);

  pid_t pid() const { return pid_; }
  const std::string& name() const { return name_; }
  const ProcessHandle& handle() const { return handle_; }
  TracedProcess* traced() { return traced_ ? &*traced_ : nullptr; }  // nullptr: not to be read
  live::LedgerFile* ledger() const { return ledger_.get(); }         // nullptr: it has none

  std::unique_ptr<live::LedgerFile> take_ledger() { return std::move(ledger_); }

  // Looks again. False: it has ended, or become another program.
  bool refresh();
  // As of the last look.
  bool is_leaving() const;      // it is about to become another program
  uint32_t seq() const;         // of the last report; 0: none
  uint32_t named_seq() const;   // reports up to this one have their final form
  uint32_t failures() const;    // reports that could not be written
  uint32_t withheld() const;    // of these, reports that filters of system calls do not let through
  std::string path() const;     // of the last report
  std::string failure() const;  // what failed last
  // There is a filter of system calls that the library has not seen being added: it may be ended by
  // a call that it takes to be allowed. False where that cannot be known.
  bool has_unknown_filter() const;
  bool label_waits() const;  // the label that was left for a report was not taken yet

 private:
  explicit AskedProcess(pid_t pid) : pid_(pid), handle_(pid) {}
  bool is_silent_child() const { return traced_ && traced_->is_child_without_report(); }
  bool maps_its_ledger() const;

  pid_t pid_;
  ProcessHandle handle_;  // held from before the checks: who gets this pid later is another one
  std::string name_;
  std::optional<TracedProcess> traced_;
  std::unique_ptr<live::LedgerFile> ledger_;
};

}  // namespace mtrace::target
