// The wait of a process at its exit for memlog (MTRACE_HOLD_EXIT), through its ledger.
#pragma once

#include "format/ledger.h"
#include "live/ledger_file.h"

namespace mtrace::live {

// Returns whether the process waits at its exit and nobody has taken it yet. Reads one word.
bool waits_at_exit(const LedgerFile& file);

// Tells the waiting process how far memlog is. Returns false with errno when the file cannot be
// written.
bool set_exit_hold(const LedgerFile& file, format::ExitHold hold);

}  // namespace mtrace::live
