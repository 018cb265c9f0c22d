// The two changes to the program's environment that children need. Both replace one pointer in
// the environment as the kernel laid it down, so that envp of main and environ both see them.
#pragma once

#include <cstdint>

namespace mtrace::hook {

// Makes the token of LD_PRELOAD that names this library absolute, so that children in other
// directories find it, and marks this process as the only one that MTRACE_FOLLOW=0 traces.
void rewrite_environment(char** envp, const char* own_path, uint32_t pid);

// Whether `follow` (0 or 0:PID) means the process `pid`.
bool is_follow_root(const char* follow, uint32_t pid);

}  // namespace mtrace::hook
