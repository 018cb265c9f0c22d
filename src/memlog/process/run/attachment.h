// Keeps a process attached for the lifetime of the object.
#pragma once

#include <sys/types.h>

#include "process/ptrace/attach.h"
#include "util/prelude.h"

namespace mtrace::process {

// Attaches to the process with these settings ("NAME=VALUE") of the library. Throws AttachError.
Done attach_with(pid_t pid, const std::vector<std::string>& settings,
                 std::chrono::milliseconds timeout);

// Detaches from the process and removes its ledger, unless it is to be kept. Throws AttachError.
Done detach_from(pid_t pid, std::chrono::milliseconds timeout, bool keep_ledger);

class Attachment {
 public:
  // Attaches to the process: it counts into a ledger and writes no reports. Throws AttachError.
  explicit Attachment(pid_t pid);
  // Detaches if possible.
  ~Attachment();
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

  std::chrono::microseconds stopped() const { return stopped_; }  // how long the process was

 private:
  pid_t pid_;
  std::chrono::microseconds stopped_{0};
};

// The library's options in a process that memlog attaches to. They replace the environment.

// Returns the MTRACE_ variables of memlog's own environment with `changes` ("NAME=VALUE") applied,
// in the form of format/attach_protocol.h. Throws std::runtime_error when there is no working
// directory.
std::string attach_settings(pid_t pid, const std::vector<std::string>& changes);

}  // namespace mtrace::process
