// Reading reports for a command: its options, what is said of a damaged file, and the exit status.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analyze/sum.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "collect/reports.h"

namespace mtrace::cli {

// From the options of filters (cli/filter_options.h), --sysroot, --symbols and --no-resolve.
// Throws UsageError and what reading a suppressions file throws. `command` stands in messages.
collect::ReadOptions read_options(const char* command, const Arguments& arguments);

// Runs `action` for each of `files` that the filter wants, says what is wrong with one and goes
// on. Returns the exit status. Throws std::runtime_error when the filter wants none.
int each_report(collect::Reports& reports, const std::vector<std::string>& files,
                const Streams& streams, const std::function<void(collect::Report&)>& action);

// Throws UsageError when the standard input ("-") is among `files`: a series needs files.
void refuse_standard_input(const char* command, const std::vector<std::string>& files);

// Says what is missing in the sums; returns the exit status.
int complain_incomplete(const std::vector<analyze::ProcessSum>& sums, const Streams& streams);

}  // namespace mtrace::cli
