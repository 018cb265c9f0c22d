// A process that is attached to for as long as it is looked at.
#pragma once

#include <sys/types.h>

#include <chrono>

namespace mtrace::target {

class Attachment {
 public:
  // Has the process count into a ledger, and write no report. Throws attach::AttachError.
  explicit Attachment(pid_t pid);
  // Detaches, as far as that can be done.
  ~Attachment();
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

  std::chrono::microseconds stopped() const { return stopped_; }  // for so long the process stood

 private:
  pid_t pid_;
  std::chrono::microseconds stopped_{0};
};

}  // namespace mtrace::target
