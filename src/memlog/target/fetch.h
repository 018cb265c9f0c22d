// Gets a report from a process that sees other files than this program does (in a container).
#pragma once

#include <sys/types.h>

#include <string>

namespace mtrace::target {

// Returns a path of the report that process `pid` calls `path`. That is `path` itself if this
// program sees the same file there. Otherwise copies the report into the working directory and
// fills in names from the files that the process sees. Throws std::runtime_error when neither
// works.
std::string fetch_report(pid_t pid, const std::string& path);

}  // namespace mtrace::target
