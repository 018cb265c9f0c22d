// The processes that a command names, and the one that it watches through its ledger.
#pragma once

#include <sys/types.h>

#include <optional>
#include <vector>

#include "process/inspect/ledgers.h"
#include "process/run/attachment.h"
#include "surface/cli/arguments.h"
#include "surface/cli/command.h"

namespace mtrace::cli {

// Reads processes from a command's operands.

// Returns the processes that the operands name, each once. Reports an operand without a process to
// the error stream and sets `good` to false. Throws UsageError when there are no operands.
std::vector<pid_t> named_processes(const Arguments& arguments, const Streams& streams, bool& good);

// The process that a command reads through its ledger. With --attach, memlog attaches to it first
// if it is not traced.

inline constexpr Option kAttachOption = {
    "--attach", "", "", "If the process is not traced, attach to it first, and detach at the end."};

class WatchedProcess {
 public:
  // Finds the process that the operand names. Says on the error stream when it has attached.
  // Throws std::runtime_error when no process or several match, it has no readable ledger, or
  // memlog cannot attach to it. The destructor detaches; until then signals that are to end memlog
  // are caught (process/ptrace/interruption.h).
  WatchedProcess(const Arguments& arguments, const Streams& streams);

  pid_t pid() const { return target_->pid(); }
  const process::ProcessHandle& process() const { return target_->process(); }
  ledger::LedgerFile& ledger() const { return target_->ledger(); }

  // Detaches. The ledger stays readable.
  void let_go() { attachment_.reset(); }

 private:
  std::optional<process::Attachment> attachment_;
  std::optional<process::Target> target_;
};

}  // namespace mtrace::cli
