// What the library is told in a process that is attached to, in place of an environment.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace mtrace::cli {

// "MTRACE_..." of memlog's own environment with `changes` ("NAME=VALUE"), as format/attach.h has
// it. Throws std::runtime_error: there is no working directory.
std::string attach_options(pid_t pid, const std::vector<std::string>& changes);

// The directory `path` as an absolute one. Throws UsageError: it is none.
std::string ledger_place(const std::string& path);

}  // namespace mtrace::cli
