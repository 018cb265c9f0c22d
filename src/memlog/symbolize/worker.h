// Work on files that nobody vouches for, in a process of its own.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace mtrace::symbolize {

// The result of `work`, done in a child process, or nothing when the child died of it. libelf and
// libdw map files and follow what stands in them: a damaged one, or one that is cut short while it
// is read, can end the process that reads it. The child has at most `cpu_seconds` of processor
// time and dies with its parent. Done here and now when no process can be made.
std::optional<std::string> run_isolated(const std::function<std::string()>& work,
                                        unsigned cpu_seconds);

}  // namespace mtrace::symbolize
