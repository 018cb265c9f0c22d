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
// `heaps`: the ledger has all live blocks. Then also writes a line "# heap: ..." if resident memory
// of malloc's heaps of at least 8 MiB and a fifth of `resident` is free, and where malloc is
// glibc's
// "# heap-stacks: ID=N ...", whose blocks keep the pages that are not (doc/memlog-format.md).
//
// `regions`: also writes a line "# region: resident=N size=N NAME" for each kind, malloc's
// included, most resident bytes first. Nearly all time goes into reading smaps, for which the
// kernel walks the page tables.
void write_resident(Writer& out, uint64_t resident, uint64_t live, bool regions, bool heaps,
                    const ledger::Ledger& ledger);

}  // namespace mtrace::report
