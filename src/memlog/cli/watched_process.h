// The process that a command reads through its ledger. With --attach, memlog attaches to it first
// if it is not traced.
#pragma once

#include <optional>

#include "cli/arguments.h"
#include "cli/command.h"
#include "target/attachment.h"
#include "target/ledgers.h"

namespace mtrace::cli {

inline constexpr Option kAttachOption = {
    "--attach", "", "", "If the process is not traced, attach to it first, and detach at the end."};

class WatchedProcess {
 public:
  // Finds the process that the operand names. Says on the error stream when it has attached.
  // Throws std::runtime_error when no process or several match, it has no readable ledger, or
  // memlog cannot attach to it. The destructor detaches; until then signals that are to end memlog
  // are caught (target/interruption.h).
  WatchedProcess(const Arguments& arguments, const Streams& streams);

  pid_t pid() const { return target_->pid(); }
  const target::ProcessHandle& process() const { return target_->process(); }
  live::LedgerFile& ledger() const { return target_->ledger(); }

  // Detaches. The ledger stays readable.
  void let_go() { attachment_.reset(); }

 private:
  std::optional<target::Attachment> attachment_;
  std::optional<target::Target> target_;
};

}  // namespace mtrace::cli
