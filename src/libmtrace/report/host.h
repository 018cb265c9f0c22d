// Facts about this process for its reports, besides those in the header of its ledger (program,
// name, node, boot_id: base::g_table_header). Gathered once, at start, because later the program
// may have changed its root, its directory, its arguments or its environment.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mtrace::report {

struct Host {
  char* command;         // arguments, escaped, with spaces between; nullptr: not kept
  char directory[4096];  // working directory at start
  uint32_t pid;
  bool began_anew;   // a fork's child whose tables have nothing of its parent's
  uint32_t parent;   // after a fork, otherwise 0
  uint64_t started;  // real time, nanoseconds
  uint64_t started_monotonic;
  uint64_t tick_zero;  // real time of the ledger's tick 0, also in the child of a fork
};

extern Host g_host;

// Fills g_host and these members of the header, before anything else and when the library is
// attached again. Not thread-safe. `argv`: from the kernel. `keep_command`: copies up to 64 KiB of
// it, escaped.
void learn_host(char* const* argv, bool keep_command);
// The part of the path after its last slash.
const char* last_component(const char* path);
// The decimal number that `text` begins with, behind blanks; 0: none.
uint64_t number_at(const char* text);
// In the child of a fork: sets its pid, its parent and its start time.
void host_after_fork(uint32_t pid, uint32_t parent);

}  // namespace mtrace::report
