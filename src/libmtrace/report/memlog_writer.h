// Writes a snapshot as a memlog (format/memlog.h). Async-signal-safe.
#pragma once

#include <cstdint>

#include "base/writer.h"
#include "report/notes.h"
#include "report/snapshot.h"

namespace mtrace::report {

// Why the report is written, and what its header has besides the snapshot.
struct Occasion {
  const char* trigger;  // signal, exit, api, request
  const char* label;    // nullptr: none
  uint32_t seq;
  uint64_t taken;  // real time, nanoseconds
  uint64_t taken_monotonic;
  bool regions;        // list the resident bytes of each kind of mapping
  const char* note;    // nullptr: none
  PendingNotes notes;  // the program's
};

void write_memlog(Writer& out, const Occasion& occasion, Snapshot& snapshot,
                  const ledger::Ledger& ledger);

}  // namespace mtrace::report
