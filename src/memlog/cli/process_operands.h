// Processes as operands of a command.
#pragma once

#include <sys/types.h>

#include <vector>

#include "cli/arguments.h"
#include "cli/command.h"

namespace mtrace::cli {

// The processes of the operands, each once. What none is called by is said, and `good` false.
// Throws UsageError when there are no operands.
std::vector<pid_t> named_processes(const Arguments& arguments, const Streams& streams, bool& good);

}  // namespace mtrace::cli
