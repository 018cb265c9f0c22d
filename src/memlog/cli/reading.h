// Reads reports for a command: its options, messages about damaged files, the exit status.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analyze/sum.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "collect/reports.h"

namespace mtrace::cli {

// Reads the filter options (cli/filter_options.h), --sysroot, --symbols and --no-resolve. `command`
// is for messages. Throws UsageError, and what reading a suppressions file throws.
collect::ReadOptions read_options(const char* command, const Arguments& arguments);

// Like read_options(), for a command with --group-by.
collect::ReadOptions read_grouped_options(const char* command, const Arguments& arguments);

// Runs `action` for each of `files` that the filter takes. Reports a damaged file and continues.
// Returns the exit status. Throws std::runtime_error when the filter takes none.
int each_report(collect::Reports& reports, const std::vector<std::string>& files,
                const Streams& streams, const std::function<void(collect::Report&)>& action);

// Throws UsageError when the standard input ("-") is among `files`: a series needs files.
void refuse_standard_input(const char* command, const std::vector<std::string>& files);

// Reports what is missing in the sums. Returns the exit status.
int complain_incomplete(const std::vector<analyze::ProcessSum>& sums, const Streams& streams);

}  // namespace mtrace::cli
