// What time it is, for memlog and for the ledgers of this machine. Thread-safe.
#pragma once

#include <cstdint>

#include "format/ledger.h"

namespace mtrace::process {

uint64_t real_time_now();  // nanoseconds since 1970

// Returns the current time in the ledger's ticks, for a process on this machine.
uint64_t ticks_now(const format::LedgerHeader& header);

}  // namespace mtrace::process
