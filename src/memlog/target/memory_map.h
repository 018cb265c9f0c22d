// All memory mappings of a process, those without a file among them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace mtrace::target {

struct Region {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool readable = false;
  bool writable = false;
  bool shared = false;
  bool wiped_by_fork = false;  // MADV_WIPEONFORK; only with flags
  std::string path;            // or "[heap]", "[stack]", "[vdso]"; empty: anonymous
};

// Returns the mappings by address; empty: the process is gone, or not readable. `flags`: also those
// that only smaps has, for which the kernel walks the process's page tables.
std::vector<Region> memory_map(pid_t pid, bool flags);

}  // namespace mtrace::target
