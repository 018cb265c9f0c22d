// Reports added up to what is live.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/table.h"
#include "profile/model.h"

namespace mtrace::analyze {

// What one process held when its last report was taken.
struct ProcessSum {
  profile::Header last;  // of its last report
  int64_t reports = 0;
  Table table;
  profile::Total total;                 // the sum of the changes
  std::vector<std::string> notes;       // what the reader should know
  std::vector<std::string> incomplete;  // why this is not what is live
};

// Adds up the reports of one process. A report that is missing, and a sum that is not what the last
// report says is live, are said in ProcessSum::incomplete.
class Summing {
 public:
  // `chosen`: only some reports were asked for, so that none is missing, and the sum is only what
  // they changed.
  explicit Summing(bool chosen) : chosen_(chosen) {}

  // The next report, in the order of their numbers. Throws std::runtime_error if it is there twice
  // or a sum does not fit 64 bits.
  void add(const profile::Memlog& memlog);
  // After at least one report.
  ProcessSum finish();

 private:
  void add_numbers(profile::Total& sum, const profile::Total& more) const;

  bool chosen_;
  ProcessSum process_;
  std::optional<profile::Total> inherited_;
  std::string name_;         // of the process
  std::string last_report_;  // its name
};

// Adds up the reports of each process (told apart by program, pid and start time). Processes come
// in the order of their start. Throws as Summing does.
std::vector<ProcessSum> sum_processes(const std::vector<profile::Memlog>& memlogs);

}  // namespace mtrace::analyze
