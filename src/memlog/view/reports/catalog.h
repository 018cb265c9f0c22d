// Lists the memlogs of a directory by their headers.
#pragma once

#include <sys/types.h>

#include "model/profile/model.h"
#include "util/prelude.h"

namespace mtrace::reports {

using ProcessKey = std::tuple<std::string, int64_t, std::string>;  // start, pid, program

// The facts of a memlog needed to choose among many; read without reading it whole.
struct Listed {
  std::string path;
  std::string program;
  std::string started;
  std::string label;
  int64_t pid = 0;
  int64_t seq = 0;
  uint64_t peak = 0;  // bytes; 0 also when absent
  int64_t first = 0;  // `seq`, or the first of the reports that were merged into this one
  std::string trigger;
  std::string refused_by;  // the directory that it should be in and could not be written to
  std::string taken = {};

  // What identifies the process on one machine.
  ProcessKey process() const { return {started, pid, program}; }
};

// Of a report that has been read.
Listed listed(const profile::Memlog& memlog);

// Returns the files in `directory` that end in .memlog or .memlog.zst and begin like a memlog, by
// path. Skips others, and those made from event logs unless all are. Throws FileError when the
// directory cannot be read.
std::vector<Listed> list_memlogs(const std::string& directory);

// Like list_memlogs(), for one file. Returns nothing when it does not begin like a memlog, or its
// header is unusually large.
std::optional<Listed> list_memlog(const std::string& path);

// Removes the reports that another one contains: where merging was cut short, both are there.
// `reports` are of one process, in order of their numbers. `each`, if given, is called for each.
void drop_contained(std::vector<Listed>& reports,
                    const std::function<void(const Listed&)>& each = nullptr);

// Returns the last report of the process that was started last; nothing: there is no report.
std::optional<std::string> newest_report(const std::string& directory);

// Returns the reports of one run up to the one at `path`, in order, if that is its report at exit
// and all of them are beside it; empty: it is not, or some are missing.
std::vector<std::string> run_until_exit(const std::string& path);

// Returns where reports go by default: MTRACE_OUTPUT's directory, which may be missing, else the
// current one.
std::string report_directory();

// Finds the reports of a program that has just run, and of the processes that it started.

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
