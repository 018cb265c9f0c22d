// How much memory this process uses, as the kernel reports it. Async-signal-safe.
#pragma once

#include <cstdint>

namespace mtrace::report {

// Bytes; 0: not known (no /proc).
struct MemoryUse {
  uint64_t resident;
  uint64_t resident_max;
  uint64_t address_space;
};

MemoryUse memory_use();

}  // namespace mtrace::report
