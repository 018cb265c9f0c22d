// Finds the reports of a program that has just run, and of the processes that it started.
#pragma once

#include <sys/types.h>

#include "util/prelude.h"

namespace mtrace::reports {

// Returns a time slightly before the one `seconds_ago`, as reports write it: their clock is coarser
// than ours.
std::string just_before(double seconds_ago);

// A program that a process executed, with its reports in order of their numbers.
struct RunProcess {
  std::string program;
  int64_t pid = 0;
  uint64_t peak = 0;      // bytes, by the last report; so is the next
  uint64_t resident = 0;  // at most; 0: unknown
  std::vector<std::string> files;
};

struct RunReports {
  // Of the process itself, in order of their numbers. If it executed several programs in turn, only
  // those of the last.
  std::vector<std::string> files;
  // Of all processes, largest first: the one with the most resident memory or, where that is not
  // known, with the highest peak of the heap.
  std::vector<RunProcess> processes;
  // The reports, of all processes, that the directory did not take, and where these are.
  size_t elsewhere = 0;
  std::string elsewhere_directory;
};

// Returns the reports of process `pid` and of the processes that were started since, at `begun` or
// later, in `directory` and where the library writes what that does not take ($TMPDIR, /tmp).
// Directories that cannot be read have none. `setting`: an option that no other program has,
// "NAME=VALUE"; empty: there is none, and programs that write there meanwhile are in `processes`.
RunReports reports_of_run(const std::string& directory, pid_t pid, const std::string& begun,
                          const std::string& setting = "");

// Returns whether the report has stacks and none of its frames has a name. Looks only at its
// beginning and its end. False also when it cannot be read.
bool lacks_names(const std::string& path);

// Finds reports that short-lived processes of a tree left without names (MTRACE_NAME_AFTER_MS).

// Returns the memlogs in the directory of `report` that this user wrote after that report's process
// was started: candidates for such reports. Leaves out links and `report` itself. Empty when
// `report` is no memlog. Throws FileError when the directory cannot be read.
std::vector<std::string> reports_since(const std::string& report);

}  // namespace mtrace::reports
