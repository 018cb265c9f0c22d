// Records the timelines of the processes of a run, from their ledgers: what malloc holds, what is
// resident, how much is allocated. The processes do not notice.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "model/ledger/ledger_file.h"
#include "model/profile/timeline.h"
#include "util/file.h"

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

}  // namespace mtrace::process
