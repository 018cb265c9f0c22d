// What memlog run knows of the event logs that its processes send to a receiver.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "util/file.h"

namespace mtrace::process {

// The senders are processes of their own that outlive the programs. Each tells by a line in a pipe
// with a name that it begins, and another that it has ended:
//
//   begin PID SENDER NAMESPACE URL    PID: of the program; NAMESPACE: of these pids
//   end URL MISSING LOST [REASON]     MISSING: bytes that did not arrive; LOST: events that found
//                                     no room; REASON: of what the log lacks at its end
class SentLogs {
 public:
  // Makes the pipe in the directory for temporary files, or else in `other`. Throws FileError.
  explicit SentLogs(const std::string& other);

  // For the environment of the program, "MEMLOG_EVENTS_STATUS=...".
  std::string setting() const { return "MEMLOG_EVENTS_STATUS=" + path(); }

  // Waits for the senders of processes that have ended. `waits` is called if that takes longer than
  // a second.
  void settle(const std::function<void()>& waits);

  struct Log {
    pid_t pid = 0;
    pid_t sender = 0;  // 0: of another namespace
    std::string url;
    bool ended = false;
    bool gone = false;     // the sender; unless `ended`, it was killed
    uint64_t missing = 0;  // bytes; once ended, as the next
    uint64_t lost = 0;     // events
    std::string why = {};  // its end is missing; empty: it is not
  };
  // In the order in which they began.
  const std::vector<Log>& logs() const { return logs_; }

 private:
  std::string path() const { return directory_.path() + "/status"; }
  bool read_lines();
  void take(const std::string& line);

  util::TemporaryDirectory directory_;
  util::Descriptor pipe_;
  std::string read_;  // of a line
  std::vector<Log> logs_;
};

}  // namespace mtrace::process
