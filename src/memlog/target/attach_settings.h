// The library's options in a process that memlog attaches to. They replace the environment.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace mtrace::target {

// Returns the MTRACE_ variables of memlog's own environment with `changes` ("NAME=VALUE") applied,
// in the form of format/attach_protocol.h. Throws std::runtime_error when there is no working
// directory.
std::string attach_settings(pid_t pid, const std::vector<std::string>& changes);

}  // namespace mtrace::target
