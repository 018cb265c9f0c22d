// Writes the meta lines of a memlog: a summary before the entries, and details after them.
// Async-signal-safe.
#pragma once

#include "base/writer.h"
#include "report/frame_writer.h"
#include "report/memlog_writer.h"

namespace mtrace::report {

void write_head(Writer& out, const Occasion& occasion, const Snapshot& snapshot,
                const ledger::Ledger& ledger);
// `modules`: the modules that the entries have named.
void write_end(Writer& out, const Occasion& occasion, const Snapshot& snapshot,
               const ledger::Ledger& ledger, const ModuleSet& modules);

}  // namespace mtrace::report
