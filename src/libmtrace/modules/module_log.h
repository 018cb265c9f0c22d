// The list of modules in the file behind the tables, for readers that outlive this process.
// Async-signal-safe.
#pragma once

#include <atomic>

#include "format/ledger.h"
#include "modules/modules.h"

namespace mtrace::unwind {

// Logs a module and its number in the list. nullptr: there is no file, or no room in it.
format::LedgerModule* log_module(const Module& module, uint32_t number);

// Copies the module's present `died` to the log. Called after a module is logged and after its
// `died` changes, so that the later of the two threads writes the final value.
void log_death(const std::atomic<format::LedgerModule*>& logged, const Module& module);

}  // namespace mtrace::unwind
