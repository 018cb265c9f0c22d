// Merges the oldest reports of a process into one, so that a service can report for months.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

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

}  // namespace mtrace::reports
