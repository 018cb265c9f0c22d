// The live blocks of a ledger, and those that the program does not call leaks.
#pragma once

#include <cstdint>
#include <vector>

#include "model/ledger/ledger_file.h"

namespace mtrace::ledger {

// Reads which blocks the program does not call leaks (__lsan_ignore_object).

struct IgnoredObject {
  uint64_t address;  // in the block
  uint64_t time;     // ticks: a block that was born later is another one
};

// In no order. Empty also for a ledger of an older library.
std::vector<IgnoredObject> read_ignored(const LedgerFile& file);

}  // namespace mtrace::ledger
