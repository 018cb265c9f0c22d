// The message about what grew since a savepoint. It names the stacks when the memlog tool can be
// had, and gives module+offset otherwise. Not for signal handlers: it waits for the tool.
#pragma once

#include "report/savepoints.h"

namespace mtrace::report {

// False: `fd` did not take it all.
bool write_growth(const Growth& growth, int fd);

}  // namespace mtrace::report
