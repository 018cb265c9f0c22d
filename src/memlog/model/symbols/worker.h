// Processes untrusted files in a child process.
#pragma once

#include "util/prelude.h"

namespace mtrace::symbols {

// Runs `work` in a child process and returns its result, or nothing when the child died. libelf and
// libdw map files and trust their content: a damaged file, or one truncated during reading, can
// kill the process that reads it. The child gets at most `cpu_seconds` of processor time and dies
// with its parent. Of the parent's open files it has standard input, output and errors, and
// `descriptor`: locks and sockets end with the parent, also when that is killed. Runs `work` in
// this process when no child can be created.
std::optional<std::string> run_isolated(const std::function<std::string()>& work,
                                        unsigned cpu_seconds, int descriptor = -1);

}  // namespace mtrace::symbols
