// A report of a process that sees other files than this program (a container's).
#pragma once

#include <sys/types.h>

#include <string>

namespace mtrace::target {

// Where the file is that process `pid` calls `path`: under that name, where this program sees the
// same file, else as a copy in the working directory, with names filled in from the files that the
// process sees. Throws std::runtime_error when it can be had in neither way.
std::string fetch_report(pid_t pid, const std::string& path);

}  // namespace mtrace::target
