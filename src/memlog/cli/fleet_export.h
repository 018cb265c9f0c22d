// memlog export -f clickhouse.
#pragma once

#include "cli/arguments.h"
#include "cli/command.h"

namespace mtrace::cli {

// Writes the rows of the reports that the operands name, or inserts them in a server (--to).
// `manual`: of the command. Returns the exit status. Throws what reading the reports throws,
// fleet::ServerError, UsageError.
int export_fleet(const Manual& manual, const Arguments& arguments, const Streams& streams);

}  // namespace mtrace::cli
