// The list of modules in the file behind the tables, for readers that outlive this process.
// Async-signal-safe.
#pragma once

#include <atomic>

#include "format/ledger.h"
#include "modules/modules.h"

namespace mtrace::unwind {

// Adds a module, which has that number in the list. nullptr: there is no file, or no room in it.
format::LedgerModule* log_module(const Module& module, uint32_t number);

// The module's death, as it stands now. Whoever logs a module and whoever ends it both say so
// afterwards.
void log_death(const std::atomic<format::LedgerModule*>& logged, const Module& module);

}  // namespace mtrace::unwind
