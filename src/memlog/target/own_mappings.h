// The mappings that a process has made itself, with their stacks, as the library keeps them with
// MTRACE_MMAP=1.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "live/ledger_file.h"

namespace mtrace::target {

struct OwnMapping {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint32_t stack = 0;  // live::LedgerStackState::index
};

// Returns the mappings by address. Empty: the library records none, or the process maps and unmaps
// all the time.
std::vector<OwnMapping> own_mappings(pid_t pid, const live::LedgerFile& ledger);

}  // namespace mtrace::target
