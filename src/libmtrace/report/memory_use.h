// How much memory this process uses, and may, as the kernel reports it. Async-signal-safe.
#pragma once

#include <cstdint>

namespace mtrace::report {

// Bytes; 0: not known (no /proc).
struct MemoryUse {
  uint64_t resident;
  uint64_t resident_max;
  uint64_t address_space;
};

// `resident_max` is at least each `resident` that was returned since reset_memory_use().
MemoryUse memory_use();
// In the child of a fork, with one thread, and where reports begin again.
void reset_memory_use();

// The least limit of memory, in bytes, that /proc/self/cgroup and /sys/fs/cgroup below `root` tell
// for the process (cgroups(7), versions 1 and 2), or its groups above; the computer's memory if
// there is none. 0: not known.
uint64_t memory_limit(const char* root);

}  // namespace mtrace::report
