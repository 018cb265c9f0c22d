// Merges the oldest reports of a process into one, so that a service can report for months.
#pragma once

#include <sys/types.h>

#include "model/symbols/symbolizer.h"
#include "util/prelude.h"
#include "view/reports/catalog.h"

namespace mtrace::reports {

// Keeps the newest `keep` numbered reports of each process in `directory` that `wanted` takes, and
// merges all older ones into one, in the place of the newest of these: its changes are the sum of
// theirs, and its header says which they were (`merged`). So the sum of all reports stays exact.
// First writes the merged report, then removes the others; views know which of them a merged report
// contains. Leaves a process alone whose oldest report is not number 1 or a merged one, and reports
// that memlog made from a ledger. Returns the number of reports that were merged away. Throws what
// reading and writing reports throws.
size_t merge_oldest(const std::string& directory, size_t keep,
                    const std::function<bool(const Listed&)>& wanted);

// Fills names into reports in the background, while the programs run that write them.

// One thread with one Symbolizer, at the lowest priority until somebody waits for it: most of the
// work of naming a small report is to open the debugging information of libc, and that is done once
// for many reports. A report that cannot be read or replaced, or is larger than kMostBytes, stays
// without names. All functions are for one thread.
class ReportNamer {
 public:
  static constexpr uint64_t kMostBytes = 128 << 20;  // of a report; it takes a multiple in memory

  // `compress`: reports of more than kLargeReport bytes.
  explicit ReportNamer(bool compress) : compress_(compress) {}
  ~ReportNamer() { finish(); }
  ReportNamer(const ReportNamer&) = delete;
  ReportNamer& operator=(const ReportNamer&) = delete;

  // Takes on the report `seq` of process `pid`.
  void add(pid_t pid, uint32_t seq, const std::string& path);
  // Returns whether the report `seq` of `pid`, or one before it, is still to get its names. Until
  // then nobody else may replace or remove it.
  bool is_pending(int64_t pid, int64_t seq) const;
  // Waits until all have their names, as far as there are any.
  void finish();
  // The same for at most `limit`. Returns false when that was too short: then the process must end
  // without the destructor, which would wait for the rest.
  bool finish_within(std::chrono::milliseconds limit);

  struct Failure {
    std::string path;
    std::string why;  // a sentence without period
  };
  // Returns the reports that stayed as they were. After finish().
  const std::vector<Failure>& failures() const { return failures_; }

 private:
  struct Report {
    pid_t pid;
    uint32_t seq;
    std::string path;
  };

  void work();
  void name_all(const std::vector<Report>& reports, symbols::Symbolizer& symbolizer);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Report> waiting_;
  std::vector<Report> under_way_;
  const bool compress_;
  std::vector<Failure> failures_;
  bool ends_ = false;
  bool ended_ = false;
  id_t worker_ = 0;  // the thread's number; 0: it has not begun
  std::thread thread_;
};

}  // namespace mtrace::reports
