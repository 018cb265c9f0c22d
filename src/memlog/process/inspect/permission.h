// Why the kernel does not let this user look into a process.
#pragma once

#include <sys/types.h>

#include <string>

namespace mtrace::process {

// Returns the reason that fits the process and this user, and what helps: "belongs to another user
// (www-data): sudo /usr/bin/memlog attach 4711". For messages after EPERM or EACCES.
std::string why_forbidden(pid_t pid);

}  // namespace mtrace::process
