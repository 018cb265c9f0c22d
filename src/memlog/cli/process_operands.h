// Reads processes from a command's operands.
#pragma once

#include <sys/types.h>

#include <vector>

#include "cli/arguments.h"
#include "cli/command.h"

namespace mtrace::cli {

// Returns the processes that the operands name, each once. Reports an operand without a process to
// the error stream and sets `good` to false. Throws UsageError when there are no operands.
std::vector<pid_t> named_processes(const Arguments& arguments, const Streams& streams, bool& good);

}  // namespace mtrace::cli
