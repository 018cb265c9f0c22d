// memlog export -f html.
#pragma once

#include <string>

#include "cli/arguments.h"
#include "collect/reports.h"

namespace mtrace::cli {

// The page about the operands; without them about all reports of the process that wrote the newest.
// Throws as reading does, std::runtime_error when they are of several processes, and UsageError for
// options that are not for pages.
std::string export_page(const Arguments& arguments, collect::Reports& reports);

}  // namespace mtrace::cli
