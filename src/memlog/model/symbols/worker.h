// Processes untrusted files in a child process.
#pragma once

#include <sys/types.h>

#include <array>
#include <functional>
#include <optional>
#include <string>

namespace mtrace::symbols {

// For the child of a fork: it dies with `parent`, leaves no core file and gets at most
// `cpu_seconds` of processor time. Of the parent's open files it has standard input, output and
// errors and `kept`: locks and sockets end with the parent, also when that is killed. Does not
// return when the parent has died already.
void confine_child(pid_t parent, unsigned cpu_seconds, std::array<int, 2> kept = {-1, -1});

// Runs `work` in a child process and returns its result, or nothing when the child died. libelf and
// libdw map files and trust their content: a damaged file, or one truncated during reading, can
// kill the process that reads it. The child gets at most `cpu_seconds` of processor time and dies
// with its parent, of whose open files it has `descriptor`, as confine_child() says. Runs `work` in
// this process when no child can be created.
std::optional<std::string> run_isolated(const std::function<std::string()>& work,
                                        unsigned cpu_seconds, int descriptor = -1);

}  // namespace mtrace::symbols
