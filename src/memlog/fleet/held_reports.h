// Which reports a place holds, alone or as parts of merged ones.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fleet/report_key.h"

namespace mtrace::fleet {

// Of each process: all reports up to a number, if one was merged, and single ones behind. A merged
// report begins with number 1, so of two reports of a process one contains the other or they have
// nothing in common.
class HeldReports {
 public:
  // Returns the held reports that `key` contains: they are not needed any more.
  std::vector<ReportKey> add(const ReportKey& key);
  // Forgets the report that has exactly this key.
  void remove(const ReportKey& key);
  // Returns whether all that `key` stands for is held.
  bool holds(const ReportKey& key) const;
  // Returns whether a part of what `key` stands for is held.
  bool touches(const ReportKey& key) const;

 private:
  using Numbers = std::map<int64_t, int64_t>;  // `seq` and `first` of each report

  std::map<std::string, Numbers> processes_;
};

}  // namespace mtrace::fleet
