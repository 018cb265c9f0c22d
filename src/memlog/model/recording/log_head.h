// The first frame of an event log: what it says of the process.
#pragma once

#include <string>

#include "format/event_ring.h"
#include "model/ledger/ledger_file.h"

namespace mtrace::events {

// Returns the content of the frame.
std::string log_head(const format::EventRingHeader& rings, const ledger::LedgerFile& ledger);

}  // namespace mtrace::events
