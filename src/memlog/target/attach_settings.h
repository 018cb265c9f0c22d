// What the library is told in a process that is attached to, in place of an environment.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace mtrace::target {

// "MTRACE_..." of memlog's own environment with `changes` ("NAME=VALUE"), as format/attach.h has
// it. Throws std::runtime_error: there is no working directory.
std::string attach_settings(pid_t pid, const std::vector<std::string>& changes);

}  // namespace mtrace::target
