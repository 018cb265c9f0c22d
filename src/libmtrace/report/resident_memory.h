// Lists what is resident: files, malloc's heaps and other mappings, by what
// /proc/thread-self/smaps says of them. memlog concludes the rest. Async-signal-safe.
#pragma once

#include <cstdint>

#include "base/writer.h"
#include "ledger/ledger.h"

namespace mtrace::report {

// Writes a line "# region: resident=N size=N NAME" for each name (doc/memlog-format.md), most
// resident bytes first: with `regions`, and where at least 8 MiB and a fifth of `resident` are more
// than `live`, what malloc holds. Nearly all time goes into reading smaps, for which the kernel
// walks the page tables. Bytes.
//
// `heaps`: the ledger has all live blocks. Then also writes a line "# heap: ..." if resident memory
// of malloc's heaps of at least 8 MiB and a fifth of `resident` is free, and where malloc is
// glibc's "# heap-stacks: ID=N ...", whose blocks keep the pages that are not.
void write_resident(Writer& out, uint64_t resident, uint64_t live, bool regions, bool heaps,
                    const ledger::Ledger& ledger);

}  // namespace mtrace::report
