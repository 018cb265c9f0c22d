// A process that has libmtrace.so mapped, with the library's status block (format/status.h) and the
// header of its ledger (format/ledger.h), both read from the process's memory.
#pragma once

#include <sys/types.h>

#include "format/ledger.h"
#include "format/status.h"
#include "process/inspect/process.h"
#include "util/prelude.h"

namespace mtrace::process {

// Adds to such a reason of find() or obstacle() that this command can attach as well: ", or memlog
// top --attach 4711". Returns any other reason as it is.
std::string with_attach_option(const std::string& why, pid_t pid, std::string_view command);

class TracedProcess {
 public:
  // Looks for the library among the mapped files of `pid`: by its name or, with `thorough`, by the
  // symbol it exports. On failure `why` says what is in the way, as a sentence without subject or
  // period. If memlog could attach to it: "is not traced; memlog attach 4711".
  static std::optional<TracedProcess> find(pid_t pid, bool thorough, std::string& why);

  pid_t pid() const { return pid_; }
  const std::string& name() const { return name_; }
  const format::StatusBlock& block() const { return block_; }
  const format::LedgerHeader& header() const { return *header_; }

  // Reads block and header again. Returns false when the process is gone or no longer readable.
  bool refresh();

  // Whether this is a fork's child that has done nothing yet: it still holds its parent's header.
  // seq() is the last report of this process; 0: none.
  bool is_child_without_report() const { return header_->pid != own_pid_; }
  uint32_t seq() const { return is_child_without_report() ? 0 : header_->seq; }

  // Whether the library counts, whatever handles the signal.
  bool counts() const { return block_.mode == format::Mode::kActive; }
  // Whether memlog has detached from it.
  bool is_detached() const;
  // Returns the bytes that malloc holds now, of samples an estimate; nothing when they cannot be
  // read.
  std::optional<uint64_t> live_bytes() const;
  // Returns how many calls of malloc, free and the like the library has counted; nothing as above.
  std::optional<uint64_t> calls() const;

  // Returns what the library does not see of Python functions, as a line of a report without
  // "# note: "; empty: nothing, or it cannot be read.
  std::string python_gap() const;

  // Returns why a signal would not get a report now, as a sentence without subject; empty: it
  // would.
  std::string obstacle() const;

  // Returns whether the process has a seccomp filter that the library did not see being added: a
  // call that the library takes to be allowed may end it.
  bool has_unknown_filter() const;
  // Whether a thread is about to execute another program, which would get any request made now.
  bool is_leaving() const { return block_.leaving != 0; }

  // Leaves a label for the next report; not in a child without a report whose header may be in its
  // parent's file. Returns false with errno.
  bool write_label(const std::string& label) const;
  // Sends the trigger signal. A thread that calls a function of the exec family meanwhile waits; a
  // raw system call does not. Returns false with `why`, as above.
  bool send_signal(const ProcessHandle& handle, std::string& why);

 private:
  TracedProcess();
  // Returns false with errno; 0: what is there is of another version.
  bool read();
  std::vector<format::LedgerThread> threads() const;

  pid_t pid_ = 0;
  uint32_t own_pid_ = 0;  // the process's pid in its own namespace
  std::string name_;
  uint64_t address_ = 0;
  format::StatusBlock block_ = {};
  uint64_t header_address_ = 0;
  std::unique_ptr<format::LedgerHeader> header_;
};

}  // namespace mtrace::process
