// The meta lines of a memlog: those before the entries, for the eye, and the details after them.
// Async-signal-safe.
#pragma once

#include "base/writer.h"
#include "report/frame_writer.h"
#include "report/memlog_writer.h"

namespace mtrace::report {

void write_head(Writer& out, const Occasion& occasion, const Snapshot& snapshot,
                const ledger::Ledger& ledger);
// `modules`: those that the entries have named.
void write_tail(Writer& out, const Occasion& occasion, const Snapshot& snapshot,
                const ledger::Ledger& ledger, const ModuleSet& modules);

}  // namespace mtrace::report
