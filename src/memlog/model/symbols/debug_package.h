// Where the names of a stripped module can be had.
#pragma once

#include <string>

namespace mtrace::symbols {

// Returns what brings names for the module at `path`, in words that end a sentence: the command
// that installs the package with its debugging information (Debian and its kin), and the debuginfod
// server of this distribution. For a file that belongs to no package: that it be built with -g.
// `root`: below which files are looked for, "" or without a slash at its end.
std::string names_from(const std::string& path, const std::string& root = "");

}  // namespace mtrace::symbols
