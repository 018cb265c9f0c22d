// Which reports a program has left that was run just now.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace mtrace::collect {

// The time as reports have it, some time before now, since their clock is coarser than ours.
std::string just_before_now();

// The reports in `directory` of the process `pid` that was started at `begun` or later, in order of
// their numbers; of several programs that it was in turn, the last.
std::vector<std::string> reports_of(const std::string& directory, pid_t pid,
                                    const std::string& begun);

// How many reports there are of others that were started since.
size_t reports_of_others(const std::string& directory, pid_t pid, const std::string& begun);

}  // namespace mtrace::collect
