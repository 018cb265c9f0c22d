// Threads that did not stop in time to be released. This program stays their tracer, and would hold
// them for ever once they do stop: a program that runs for long looks after them.
#pragma once

#include <sys/types.h>

namespace mtrace::target {

// Notes a thread of `pid` that this program traces and that runs.
void release_later(pid_t pid, pid_t tid);

// Releases those that have stopped meanwhile. To be called when SIGCHLD has come, which announces
// their stop, or from time to time.
void release_late();

}  // namespace mtrace::target
