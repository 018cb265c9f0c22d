// One look at a running process as JSON.
#pragma once

#include <functional>
#include <vector>

#include "json/answer.h"
#include "live/ledger_file.h"
#include "live/watch.h"

namespace mtrace::json {

// Adds the id and frames of a stack of the ledger to its object.
using PutStack = std::function<void(Value&, const live::LedgerStackState&)>;

// Returns the answer of memlog top --once: the process, its totals, and `rows`.
Value watch(const live::LedgerFile& file, const live::Watch& watch,
            const std::vector<live::WatchRow>& rows, const PutStack& put_stack);

}  // namespace mtrace::json
