// Asks processes for reports at regular intervals (memlog run and attach, --every). Uses the
// gentlest way available (report_channels.h). A process that ends or executes another program is no
// error.
#pragma once

#include <sys/types.h>

#include "model/ledger/ledger_file.h"
#include "model/profile/timeline.h"
#include "process/inspect/process.h"
#include "util/file.h"
#include "util/prelude.h"

namespace mtrace::process {

class RegularReports {
 public:
  // Is told of the report `seq` that `pid` has written without names, and is to fill them in.
  using Named = std::function<void(pid_t pid, uint32_t seq, const std::string& path)>;

  explicit RegularReports(Named named) : named_(std::move(named)) {}
  ~RegularReports() { finish(); }
  // Withdraws unanswered requests, and tells of the last reports.
  void finish() noexcept;
  // Asks each process for a report. A process with a ledger answers at its next operation. If it
  // has worked since its last report and then does nothing for a second, one of its threads is
  // borrowed. Skips processes that cannot be asked now. Takes at most a second per process. Returns
  // false when none of the processes is traced any more.
  bool ask(const std::vector<pid_t>& pids) noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  // What became of the last request to a ledger.
  enum class Request { kNone, kAnswered, kOpen, kOverdue };
  // What became of a process that was to be asked.
  enum class Fate { kNotTraced, kLeftAlone, kAsked };
  // A known process with a ledger.
  struct Known {
    explicit Known(pid_t pid) : handle(pid) {}
    ProcessHandle handle;
    std::unique_ptr<ledger::LedgerFile> ledger;
    bool asked = false;
    Clock::time_point when;         // time of the last request
    uint32_t seq = 0;               // last report at that time
    uint64_t operations = 0;        // operations made by that time
    uint64_t covered = UINT64_MAX;  // operations that the last report covers, at least
    bool names = false;             // this process finds the files that the other one names
    uint32_t named = 0;             // last report whose names were left and that was told of

    Request request() const;
  };

  Fate ask_one(pid_t pid);
  void settle(pid_t pid, Known& known) const noexcept;
  void tell_of_unnamed(pid_t pid, Known& known) const;
  bool look_again(Known& known) const;
  void ask_ledger(pid_t pid, Known& known);

  Named named_;
  std::map<pid_t, Known> known_;
};

// Records the timelines of the processes of a run, from their ledgers: what malloc holds, what is
// resident, how much is allocated. The processes do not notice.
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
