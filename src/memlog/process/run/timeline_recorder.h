// Records the timelines of the processes of a run, from their ledgers: what malloc holds, what is
// resident, how much is allocated. The processes do not notice.
#pragma once

#include <sys/types.h>

#include "model/ledger/ledger_file.h"
#include "model/profile/timeline.h"
#include "util/file.h"
#include "util/prelude.h"

namespace mtrace::process {

class TimelineRecorder {
 public:
  // `ledgers`: the directory of the ledgers; empty: nothing is recorded. Timelines go to `reports`
  // as PROGRAM-PID.timeline. `interval`: of the first samples, 10 to 1000 milliseconds.
  TimelineRecorder(std::string ledgers, std::string reports, std::chrono::milliseconds interval);

  // Takes a sample of each process that is due. Call it at least as often as the interval. A
  // process that has ended, or has become another program, gets its file. A timeline that is full
  // is written, too, and goes on with half the resolution.
  void look() noexcept;
  // Writes the timelines of all processes that still run.
  void finish() noexcept;
  // Returns what could not be written, a line for each file.
  const std::string& trouble() const { return trouble_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Course {
    std::unique_ptr<ledger::LedgerFile> ledger;
    util::Descriptor memory;  // /proc/PID/statm
    profile::Timeline timeline;
    profile::Sample next;  // the part of the next sample that is known
    uint64_t looks = 0;    // in it
    uint64_t allocations = 0;
    Clock::time_point due;
    std::string path;  // of its file; empty: not written yet
    bool over = false;
    bool failed = false;  // the file lacks something
  };

  void find_processes();
  bool begin(const std::string& path, Course& course) const;
  void sample(Course& course, Clock::time_point now);
  void close_interval(Course& course);
  void write(Course& course);

  std::string ledgers_;
  std::string reports_;
  std::chrono::milliseconds interval_;
  uint64_t begun_;                         // nanoseconds since 1970
  std::map<std::string, Course> courses_;  // by the ledger's path
  std::string trouble_;
};

// What memlog run knows of the event logs that its processes send to a receiver.

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
