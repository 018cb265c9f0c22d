// Names the memory that is resident and not malloc's: files, code made at run time, the heaps of V8
// and of Java, and what the program has mapped otherwise. From /proc/self/smaps. Async-signal-safe.
#pragma once

#include <cstdint>

#include "base/writer.h"
#include "ledger/ledger.h"

namespace mtrace::report {

// A line "# note: resident, not malloc's: NAME N MiB, ..." with each kind that has at least 8 MiB
// and a fifth of `resident`; none: no line. `live`: what malloc holds; where the rest of `resident`
// is less than that, nothing is looked for. Bytes.
//
// `regions`: and a line "# region: resident=N size=N NAME" for each kind, malloc's included, the
// one with most resident bytes first. Their time is that of reading smaps, for which the kernel
// goes through the page tables.
void write_resident(Writer& out, uint64_t resident, uint64_t live, bool regions,
                    const ledger::Ledger& ledger);

}  // namespace mtrace::report
