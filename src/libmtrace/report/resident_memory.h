// Lists memory that is resident and not malloc's: files, code made at run time, the heaps of V8 and
// of Java, and other mappings. From /proc/thread-self/smaps. Async-signal-safe.
#pragma once

#include <cstdint>

#include "base/writer.h"
#include "ledger/ledger.h"

namespace mtrace::report {

// Writes a line "# note: resident, not malloc's: NAME N MiB, ..." with each kind that has at least
// 8 MiB and a fifth of `resident`; without such a kind, no line. `live`: what malloc holds; if the
// rest of `resident` is less than that, smaps is not read for it. Bytes.
//
// `regions`: also writes a line "# region: resident=N size=N NAME" for each kind, malloc's
// included, most resident bytes first. Nearly all time goes into reading smaps, for which the
// kernel walks the page tables.
void write_resident(Writer& out, uint64_t resident, uint64_t live, bool regions,
                    const ledger::Ledger& ledger);

}  // namespace mtrace::report
