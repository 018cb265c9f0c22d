// Pages as the kernel has them: it refuses addresses and offsets in a file that are on no boundary.
#pragma once

#include <cstdint>

#include "base/machine.h"

namespace mtrace::sys {

inline uintptr_t page_start(uintptr_t address) { return address & ~(machine::page_bytes() - 1); }
// Rounds as the kernel does, wrap included.
inline uintptr_t whole_pages(uintptr_t bytes) {
  return page_start(bytes + machine::page_bytes() - 1);
}

}  // namespace mtrace::sys
