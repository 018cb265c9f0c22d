// Reports added up to what is live.
#pragma once

#include <cstdint>
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

// Adds up the reports of each process (told apart by program, pid and start time), in the order
// of their numbers. A report that is missing, and a sum that is not what the last report says is
// live, are said in ProcessSum::incomplete. Processes come in the order of their start. Throws
// std::runtime_error if one report is there twice or a sum does not fit 64 bits. `chosen`: only
// some reports were asked for, so that none is missing, and the sum is only what they changed.
std::vector<ProcessSum> sum_processes(const std::vector<profile::Memlog>& memlogs,
                                      bool chosen = false);

}  // namespace mtrace::analyze
