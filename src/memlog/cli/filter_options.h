// The options that select what a view shows.
#pragma once

#include <vector>

#include "analyze/filter.h"
#include "cli/arguments.h"

namespace mtrace::cli {

// Appends the filter options to `options`.
std::vector<Option> with_filters(std::vector<Option> options);
// Appends the options of a command that prints stacks: how to print, where to find names, then the
// filters.
std::vector<Option> with_view_options(std::vector<Option> options);

// Reads the filter options. `command` is for messages. Throws UsageError, and FormatError for a
// suppressions file.
analyze::Filter read_filter(const char* command, const Arguments& arguments);

}  // namespace mtrace::cli
