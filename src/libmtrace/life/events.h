// The event log of this process (MTRACE_EVENTS): its beginning and its end.
#pragma once

#include "format/event_ring.h"

namespace mtrace::hook {

// With the options, before the first block is counted. Without a log the program runs as usual.
void begin_events();
// A line on stderr where the log that was asked for cannot be written.
void say_when_not_logged();
// Nothing is logged any more; waits until what was is written, as for names (MTRACE_EXIT_WAIT).
void end_events(format::EventsState how);
// After an exec that failed: begins another log.
void resume_events();

// In the thread that forks, before it does: waits until the log has a name, for the child to tell,
// and logs the fork.
void log_fork();
// In the child of a fork, before anything there could be logged: nothing of it gets to the parent.
// `told`: log_fork() came before this fork. Only the first call counts.
void leave_parents_events(bool told);
// Then, once the child is set up.
void begin_childs_events();

}  // namespace mtrace::hook
