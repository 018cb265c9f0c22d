// The process that writes the event log: memlog (report/launcher.h). Its standard input is memory
// that it shares with this process, its standard output the ledger, which it reads.
//
// By one thread at a time, signals blocked or harmless.
#pragma once

#include <cstdint>

#include "format/event_ring.h"

namespace mtrace::report {

struct EventSettings {
  const char* place;  // "1": beside the reports; a directory; or a file
  bool drop;
  bool owns_ledger;     // nobody else asked for it
  bool full;            // with addresses and steps of 100 ns
  uint64_t most_bytes;  // of its files together; 0: any number
  uint32_t files;       // of them
  uint32_t cull_ms;     // blocks that live shorter are left out; 0: none
};

// Makes the rings and starts the writer. Returns nullptr, or a static text: why there is no log.
const char* start_event_writer(const EventSettings& settings);
// Waits until the writer has made the log's file, at most 20 seconds (a busy machine). `why`, if
// given, receives the reason when the writer has given up, and the log then ends; `error` the errno
// of the log's file, which stands behind the reason, or 0.
void await_event_log(const char** why, int* error);
// Before an exec, which takes the ledger's name: keeps the ledger open, for another writer if the
// exec fails.
void keep_ledger_open();
// Call before a fork: stores the time at which the child leaves its parent's log.
void note_fork();
// In the child of a fork: leaves its parent's writer and rings, once. `fork`: the number of the
// fork in the parent's log; 0: not recorded there. start_event_writer() may follow.
void leave_event_writer(uint32_t fork);
// Ends the log: waits at most `seconds` until everything is written, then kills the writer.
void finish_event_writer(format::EventsState how, uint64_t seconds);

}  // namespace mtrace::report
