// The sizes of blocks at reports, from an event log: reports do not hold sizes.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "model/profile/model.h"
#include "view/export/report_page.h"

namespace mtrace::exporting {

// Returns the sizes of the blocks of each stack at the reports `headers` of one process, by their
// place in `headers`, from 1: from the event log at `path`. Throws what reading throws, and
// std::runtime_error when the log is another process's or has none of the reports.
std::map<size_t, StackSizes> exact_sizes(const std::string& path,
                                         const std::vector<profile::Header>& headers);

}  // namespace mtrace::exporting
