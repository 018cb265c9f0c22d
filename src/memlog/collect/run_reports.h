// Finds the reports of a program that has just run.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace mtrace::collect {

// Returns a time slightly before now, as reports write it: their clock is coarser than ours.
std::string just_before_now();

// Returns the reports in `directory` of process `pid`, started at `begun` or later, in order of
// their numbers. If the process executed several programs in turn, only those of the last.
std::vector<std::string> reports_of(const std::string& directory, pid_t pid,
                                    const std::string& begun);

// Returns the number of reports of other processes that were started since.
size_t reports_of_others(const std::string& directory, pid_t pid, const std::string& begun);

}  // namespace mtrace::collect
