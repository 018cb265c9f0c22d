// The event log of this process (MTRACE_EVENTS): its beginning and its end.
#pragma once

#include "format/event_ring.h"

namespace mtrace::life {

// After read_options(), before a block is counted. Without a log the program runs as usual.
void begin_events();
// Writes a line to stderr if the requested log cannot be written.
void say_when_not_logged();
// Ends the log; waits until all events are written, at most MTRACE_EXIT_WAIT.
void end_events(format::EventsState how);
// After a failed exec: begins another log.
void resume_events();

// In the thread that forks, before the fork: waits until the log has a name, which the child's log
// will give as its parent's, and logs the fork.
void log_fork();
// In a fork's child, before anything there is logged: leaves the parent's log. `logged`: log_fork()
// came before this fork. Only the first call has an effect.
void leave_parents_events(bool logged);
// Starts the child's own log, once the child is set up.
void begin_childs_events();

}  // namespace mtrace::life
