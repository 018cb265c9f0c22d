// Finds reports that short-lived processes of a tree left without names (MTRACE_NAME_AFTER_MS).
#pragma once

#include <string>
#include <vector>

namespace mtrace::collect {

// Returns the memlogs in the directory of `report` that this user wrote after that report's process
// was started: candidates for such reports. Leaves out links and `report` itself. Empty when
// `report` is no memlog. Throws FileError when the directory cannot be read.
std::vector<std::string> reports_since(const std::string& report);

}  // namespace mtrace::collect
