// What memlog run says of a program that has ended.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "analyze/sum.h"
#include "target/launch.h"
#include "text/style.h"

namespace mtrace::text {

// The time as reports have it, some time before now, since their clock is coarser than ours.
std::string just_before_now();

// The reports in `directory` of the process `pid` that was started at `begun` or later, in order of
// their numbers; of several programs that it was in turn, the last.
std::vector<std::string> reports_of(const std::string& directory, pid_t pid,
                                    const std::string& begun);

// How many reports there are of others that were started since.
size_t reports_of_others(const std::string& directory, pid_t pid, const std::string& begun);

// "ended with status 0", "was killed by SIGSEGV (Segmentation fault)".
std::string end_text(int status);

// Peak, what is live at exit, and the largest stacks of it, from `files` of one process. Throws
// what reading them throws.
std::string run_summary(const std::vector<std::string>& files, const Style& style);

}  // namespace mtrace::text
