// Writes what grew since a savepoint: with function names when the memlog tool is available, with
// module+offset otherwise. Not for signal handlers: waits for the tool.
#pragma once

#include "report/savepoints.h"

namespace mtrace::report {

// False: no memory, or `fd` did not take the whole text.
bool write_growth(const Growth& growth, int fd);

}  // namespace mtrace::report
