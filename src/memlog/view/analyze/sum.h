// Adds up reports to what is live.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/profile/model.h"
#include "view/analyze/table.h"

namespace mtrace::analyze {

// What one process held at its last report.
struct ProcessSum {
  profile::Header last;  // of its last report
  int64_t reports = 0;
  Table table;
  profile::Total total;                     // sum of the changes
  std::optional<profile::Total> inherited;  // at its fork: not in the sum
  std::vector<std::string> notes;           // for the reader
  std::vector<std::string> incomplete;      // reasons why this is not all that is live
};

// Adds up the reports of one process. Puts a missing report into ProcessSum::incomplete, and also a
// sum that differs from what the last report says is live.
class Summing {
 public:
  // `chosen`: the user selected reports, so none is missing, and the sum is only their changes.
  explicit Summing(bool chosen, Rows rows = Rows::kStacks) : chosen_(chosen), rows_(rows) {
    process_.table = Table(Rows::kEntries);
  }

  // Adds the next report, in order of report numbers. Throws std::runtime_error when it is there
  // twice, or a sum does not fit 64 bits.
  void add(const profile::Memlog& memlog);
  // Call it after at least one report.
  ProcessSum finish();

 private:
  void join_entries();

  bool chosen_;
  Rows rows_;
  ProcessSum process_;
  std::string name_;         // of the process
  std::string last_report_;  // name of the last report
};

// Adds up the reports of each process (identified by program, pid and start time). Returns the
// processes in the order of their start. Throws as Summing does.
std::vector<ProcessSum> sum_processes(const std::vector<profile::Memlog>& memlogs);

}  // namespace mtrace::analyze
