// Writes the event log of a process while it runs: what its library started it for.
#pragma once

#include "format/event_ring.h"
#include "format/ledger.h"
#include "model/recording/log_file.h"
#include "util/prelude.h"

namespace mtrace::events {

// Returns where the log of a process goes; nullptr: into a file. Called while the process of the
// caller has one thread, and only this one maps the memory. Throws util::FileError.
using OpenSink = std::function<std::unique_ptr<FrameSink>(const format::EventRingHeader&,
                                                          const format::LedgerHeader&)>;

// Takes the events of the process whose memory (format/event_ring.h) is the file `rings` and whose
// ledger is the file `ledger`, until the process has ended, and writes them. Takes over the
// descriptor of the ledger. Returns 0, or the errno of what was in the way. Throws
// std::runtime_error if the files are no such ones.
int record_events(int rings, int ledger, const OpenSink& open_sink);

}  // namespace mtrace::events
