// Takes stacks that match a pattern out of what a heap scan found lost.
#pragma once

#include <vector>

#include "analyze/suppressions.h"
#include "cli/heap_scan.h"
#include "live/known_ledger.h"
#include "text/stack_names.h"

namespace mtrace::cli {

// Has `names` learn the stacks of all blocks that are lost in some way.
void suppress_stacks(HeapScan& scan, const live::LedgerFile& file, const live::KnownLedger& known,
                     text::StackNames& names, const std::vector<analyze::StackPattern>& patterns);

}  // namespace mtrace::cli
