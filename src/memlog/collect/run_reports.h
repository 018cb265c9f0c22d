// Finds the reports of a program that has just run.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace mtrace::collect {

// Returns a time slightly before now, as reports write it: their clock is coarser than ours.
std::string just_before_now();

struct RunReports {
  // Of the process itself, in order of their numbers. If it executed several programs in turn, only
  // those of the last.
  std::vector<std::string> files;
  size_t others = 0;  // reports of other processes
  // The reports, of all processes, that the directory did not take, and where these are.
  size_t elsewhere = 0;
  std::string elsewhere_directory;
};

// Returns the reports of process `pid`, started at `begun` or later, and the number of those of
// processes that were started since, in `directory` and where the library writes what that does
// not take ($TMPDIR, /tmp). Directories that cannot be read have none.
RunReports reports_of_run(const std::string& directory, pid_t pid, const std::string& begun);

// Returns whether the report has stacks and none of its frames has a name. Looks only at its
// beginning and its end. False also when it cannot be read.
bool lacks_names(const std::string& path);

}  // namespace mtrace::collect
