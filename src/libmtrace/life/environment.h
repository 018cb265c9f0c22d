// The program's arguments and environment, and the two changes to the latter that children need.
// Both replace one pointer in the environment as the kernel laid it down, so that envp of main and
// environ both see them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mtrace::hook {

struct Arguments {
  char** argv;
  char** envp;
};
// As the kernel laid them down, before libc has set up environ.
Arguments initial_arguments();
// Of a program that runs already and may have changed what it was given: the arguments as the
// kernel shows them, and `options`, each ended by a zero byte, the last by two, in place of the
// environment. Both are copied; what finds no room is left out.
Arguments late_arguments(const char* options);

// Makes the token of LD_PRELOAD that names this library absolute, so that children in other
// directories find it, and marks this process as the only one that MTRACE_FOLLOW=0 traces.
void rewrite_environment(char** envp, const char* own_path, uint32_t pid);

// Whether a token of LD_PRELOAD means this library: the same last component, and ours is what the
// loader found by it.
bool is_own_token(const char* token, size_t length, const char* own_path);

// Whether `follow` (0 or 0:PID) means the process `pid`.
bool is_follow_root(const char* follow, uint32_t pid);

}  // namespace mtrace::hook
