// What a report says about the process it is in: facts gathered once, at start, because later the
// program may have changed its root, its directory, its arguments or its environment.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mtrace::report {

struct Host {
  char program[4096];    // path of the executable, links followed
  char name[256];        // last component of the path that was executed
  char* command;         // arguments, each escaped, by spaces; nullptr: not kept
  char directory[4096];  // working directory at start
  char node[65];         // host name
  char boot_id[40];
  uint32_t pid;
  uint32_t parent;   // after a fork, otherwise 0
  uint64_t started;  // real time, nanoseconds
  uint64_t started_monotonic;
  uint64_t tick_zero;  // real time of the ledger's tick 0, also in the child of a fork
};

extern Host g_host;

// Before anything else; not thread-safe; again when the library is attached again. `argv`: as the
// kernel laid it down; `keep_command`: copy it, up to 64 KiB of escaped text.
void learn_host(char* const* argv, bool keep_command);
// What follows the last slash.
const char* last_component(const char* path);
// In the child of a fork, which is process `pid`, of `parent`.
void host_after_fork(uint32_t pid, uint32_t parent);

}  // namespace mtrace::report
