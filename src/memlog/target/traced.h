// A process that has libmtrace.so mapped, and what the library says about itself (format/status.h).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "format/status.h"
#include "target/process.h"

namespace mtrace::target {

class TracedProcess {
 public:
  // Looks for the library among the files that `pid` has mapped: by its name, else (`thorough`)
  // by the symbol it exports. On failure `why` says what is in the way, as a sentence without
  // subject or period: "is not traced: ...".
  static std::optional<TracedProcess> find(pid_t pid, bool thorough, std::string& why);

  pid_t pid() const { return pid_; }
  const std::string& name() const { return name_; }
  const format::StatusBlock& block() const { return *block_; }

  // Reads the block again. False: the process is gone or cannot be read any more.
  bool refresh();

  // The last report of this process, 0: none. A fork child still holds its parent's block until
  // its first report.
  bool is_child_without_report() const { return block_->pid != own_pid_; }
  uint32_t seq() const { return is_child_without_report() ? 0 : block_->seq; }

  // True: the library counts, whatever is with the signal.
  bool counts() const { return block_->mode == format::Mode::kActive; }
  // Why a signal would not get a report now, as a sentence without subject; empty: it would.
  std::string obstacle() const;

  // There is a filter of system calls that the library has not seen being added: it may be ended by
  // a call that it takes to be allowed.
  bool has_unknown_filter() const;
  // A thread is about to replace the program: what is asked of it now the next one would get.
  bool is_leaving() const { return block_->leaving != 0; }

  // Leaves a label for the next report. False with errno.
  bool write_label(const std::string& label) const;
  // Sends the trigger signal. A thread that comes to replace the program meanwhile waits, if it
  // goes by a function of the exec family; a raw system call does not. False: `why`, as above.
  bool send_signal(const ProcessHandle& handle, std::string& why);

 private:
  TracedProcess() = default;
  pid_t pid_ = 0;
  uint32_t own_pid_ = 0;  // as the process itself has it, in its namespace
  std::string name_;
  uint64_t address_ = 0;
  std::unique_ptr<format::StatusBlock> block_;
};

// A text of the block: up to its zero, never beyond the array.
template <size_t kSize>
std::string block_text(const char (&text)[kSize]) {
  size_t size = 0;
  while (size < kSize && text[size] != '\0') ++size;
  return std::string(text, size);
}

}  // namespace mtrace::target
