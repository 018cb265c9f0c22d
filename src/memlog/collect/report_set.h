// One side of a comparison: a report, or a set of them, and what it holds.
#pragma once

#include <string>
#include <vector>

#include "analyze/sum.h"
#include "collect/reports.h"

namespace mtrace::collect {

struct ReportSet {
  std::vector<analyze::ProcessSum> processes;
  analyze::Table table;  // of all of them
  profile::Total total;
};

// The files that `operand` names: one, the reports of a directory, or those that a pattern of the
// shell's (in quotes) matches. Throws std::runtime_error when there is none.
std::vector<std::string> files_of(const std::string& operand);

// What is live in `files`: the sum of the reports of each process up to the last one named; those
// before it that are not named are looked for beside it. Throws std::runtime_error when one is
// missing or the sum is not what the last report says is live.
ReportSet live_set(const std::vector<std::string>& files, Reports& reports,
                   analyze::LeftOut& left_out);

// What changed in the reports `files`.
ReportSet delta_set(const std::vector<std::string>& files, Reports& reports,
                    analyze::LeftOut& left_out);

}  // namespace mtrace::collect
