// The options by which every view is told what it is about.
#pragma once

#include <vector>

#include "analyze/filter.h"
#include "cli/arguments.h"

namespace mtrace::cli {

// Puts the options of the filters behind `options`.
std::vector<Option> with_filters(std::vector<Option> options);
// The same for a command that prints stacks: before the filters, how, and where names come from.
std::vector<Option> with_view_options(std::vector<Option> options);

// Throws UsageError, and FormatError of a suppressions file. `command` stands in messages.
analyze::Filter read_filter(const char* command, const Arguments& arguments);

}  // namespace mtrace::cli
