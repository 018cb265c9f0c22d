// How much memory this process uses, and may, as the kernel reports it. Async-signal-safe.
#pragma once

#include <cstdint>

#include "base/writer.h"
#include "format/cost.h"
#include "ledger/ledger.h"

namespace mtrace::report {

// Bytes; 0: not known (no /proc).
struct MemoryUse {
  uint64_t resident;
  uint64_t resident_max;
  uint64_t address_space;
};

// `resident_max` is at least each `resident` that was returned since reset_memory_use().
MemoryUse memory_use();
// In the child of a fork, with one thread, and where reports begin again.
void reset_memory_use();

// The least limit of memory, in bytes, that /proc/self/cgroup and /sys/fs/cgroup below `root` tell
// for the process (cgroups(7), versions 1 and 2), or its groups above; the computer's memory if
// there is none. 0: not known.
uint64_t memory_limit(const char* root);

// ---- What tracing costs the program, for reports and, in the header of the ledger, for memlog.
// Thread-safe; async-signal-safe.

// Measures the memory of the tables, with a system call for each part of the heap's shadow, and
// publishes it to other processes.
format::OwnCost measure_cost(const ledger::Ledger& ledger);
// Adds the time that a thread of the program has spent on a report.
void add_stopped(uint64_t nanoseconds);
// The tables have reached MTRACE_MAX_MEMORY at `time` (nanoseconds since 1970).
void full_since(uint64_t time);

// Writes a line "# cost: ...". `calls`: number of counted calls; 0: unknown.
void write_cost(Writer& out, const ledger::Ledger& ledger, uint64_t calls);
// Writes a line "# note: ..." if the tables have reached MTRACE_MAX_MEMORY.
void write_full_since(Writer& out);

// ---- What is resident: files, malloc's heaps and other mappings, by what /proc/thread-self/smaps
// says of them. memlog concludes the rest. Async-signal-safe.

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
