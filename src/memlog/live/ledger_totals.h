// The totals of a ledger: cheap enough to be read a hundred times a second.
#pragma once

#include <cstdint>
#include <optional>

#include "live/ledger_file.h"

namespace mtrace::live {

struct LedgerTotals {
  uint64_t live_bytes = 0;  // of the heap; so are the blocks
  uint64_t live_blocks = 0;
  uint64_t allocations = 0;  // calls since the start that return memory
  uint64_t calls = 0;        // those and frees, as far as they are counted: none while sampling
  format::LedgerState state = format::LedgerState::kRunning;
};

// Reads the totals of all threads. Each thread's are read at once, but threads go on meanwhile, so
// a block that one allocates and another frees may count for one of them only. Uses the header of
// the last refresh(). Returns nothing when the file does not have them.
std::optional<LedgerTotals> read_totals(const LedgerFile& file);

}  // namespace mtrace::live
