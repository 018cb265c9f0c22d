// One side of a comparison: what one report or a set of reports holds.
#pragma once

#include <string>
#include <vector>

#include "view/analyze/sum.h"
#include "view/reports/reports.h"

namespace mtrace::reports {

struct ReportSet {
  std::vector<analyze::ProcessSum> processes;
  analyze::Table table;  // over all processes
  profile::Total total;
};

// Returns the files that `operand` names: a file, the reports of a directory, or the matches of a
// quoted shell pattern. Throws std::runtime_error when there is none.
std::vector<std::string> files_of(const std::string& operand);
// Returns the files that the operands name, in their order.
std::vector<std::string> files_of(const std::vector<std::string>& operands);

// Returns what is live in `files`: for each process the sum of its reports up to the last one
// named. Finds earlier reports that are not named beside it. Throws std::runtime_error when one is
// missing, or the sum differs from what the last report says is live.
ReportSet live_set(const std::vector<std::string>& files, Reports& reports,
                   analyze::LeftOut& left_out);

// Returns what changed in the reports `files`.
ReportSet delta_set(const std::vector<std::string>& files, Reports& reports,
                    analyze::LeftOut& left_out);
// The same for reports that were found or made otherwise.
ReportSet delta_set_of(std::vector<Found> found, Reports& reports, analyze::LeftOut& left_out);

}  // namespace mtrace::reports
