// The process that writes the event log: memlog, started by a supervisor as the resolver is
// (report/resolver_process.h), and fed by memory that it shares with this process.
//
// By one thread at a time, signals blocked or harmless.
#pragma once

#include <cstdint>

#include "format/event_ring.h"

namespace mtrace::report {

struct EventSettings {
  const char* place;  // "1": beside the reports; a directory; or a file
  bool drop;
  uint32_t cull_ms;  // blocks that live shorter are left out; 0: none
};

// Makes the rings and starts the writer. nullptr, or why there is no log, as a text that stays.
const char* start_event_writer(const EventSettings& settings);
// Waits until the writer has made the log's file, at most 20 seconds (a busy machine). `why`, if
// given: gets the reason where it has not been able to.
void await_event_log(const char** why);
// Before a fork: it is at this moment that the child leaves its parent's log.
void note_fork();
// In the child of a fork: leaves what is its parent's, once. `fork`: its number in the parent's
// log; 0: not told of there. start_event_writer() may follow.
void leave_event_writer(uint32_t fork);
// Ends the log: waits until the writer has written everything, at most `seconds`, and then ends it.
void finish_event_writer(format::EventsState how, uint64_t seconds);

}  // namespace mtrace::report
