// Reports that short processes of a tree have left without names (MTRACE_NAME_AFTER_MS).
#pragma once

#include <string>
#include <vector>

namespace mtrace::collect {

// Memlogs in the directory of `report` that this user has written since its process began: what may
// be such a report. No links, and not `report` itself. Empty if that is no memlog. Throws FileError
// if the directory cannot be read.
std::vector<std::string> reports_since(const std::string& report);

}  // namespace mtrace::collect
