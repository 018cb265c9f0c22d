// Writes the event log of a process while it runs: what its library started it for.
#pragma once

namespace mtrace::events {

// Takes the events of the process whose memory (format/event_ring.h) is the file `fd`, until the
// process has ended, and writes them. Returns 0, or the errno of what was in the way. Throws
// std::runtime_error if the file is no such memory.
int record_events(int fd);

}  // namespace mtrace::events
