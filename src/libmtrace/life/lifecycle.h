// The life of the library in a process: start, fork, end.
#pragma once

#include <cstddef>

#include "format/event_ring.h"
#include "next/next_functions.h"
#include "record/recorder.h"

namespace mtrace::life {

// Makes the library ready, once: finds the real functions, reads the options, decides whether
// this program is traced. From then on allocations are counted. May run before any constructor.
// False while that is not possible yet.
bool start();

// True: the real functions are known.
bool ready_slowly();
inline bool ready() { return record::g_path.malloc != nullptr || ready_slowly(); }

// True: the library was loaded into a program that ran already. Then start() does nothing.
bool is_late();
// Starts a late library, for the first time or again, with `options` (format/attach_protocol.h).
// Returns why it cannot; nullptr: it counts the calls that reach its hooks, until stop_late(). Call
// both while the process's other threads are stopped, none of them inside malloc, the loader or
// this library.
const char* start_late(const char* options);
void stop_late();

// True in a process whose allocations these tables hold: not in a vfork child, which shares its
// parent's memory. Sets up a fork's child first. Async-signal-safe.
bool is_own_process();

// Stops or resumes the recording of new allocations. Returns whether it was on; false also in a
// program that is not traced. Thread-safe; async-signal-safe.
bool set_recording(bool on);
void toggle_recording();

// ---- Programs that are not traced although the library is loaded.

// The program is the memlog tool.
bool is_memlog();
// Why this program is not traced; nullptr: it is. After read_options() and report::learn_host().
const char* why_dormant();

// Returns a sentence without subject that names the sanitizer whose allocator the program has;
// nullptr: none. Such a program is not traced: the stacks would show the sanitizer's internals, and
// hooks in between could show in its findings. After find_next_functions().
const char* sanitizer();
// Writes a line to stderr if sanitizer() has found one.
void say_when_aside();

// ---- Whether the program's calls reach this library's malloc.

// Finds out whose malloc the program and its libraries call, for report/coverage.h. After
// find_next_functions(). `late`: memlog attach will patch the calls to lead here.
void find_entry_points(bool late);

// Writes a line to stderr if the program defines malloc, or a tool of valgrind replaces it.
void say_when_hidden();

// ---- The message at start when reports cannot go where they should.

// Writes a line to stderr when reports cannot be written where they should be: why, and where they
// go; not if the parent has (life/environment.h). `envp`: this process's environment.
void say_when_output_fails(char* const* envp);

// ---- Waits at the end for memlog (MTRACE_HOLD_EXIT), which meanwhile searches for lost blocks
// (memlog run --unreachable): before exit handlers and destructors drop the pointers to blocks, and
// after these if memlog requests it.
//
// None of these is async-signal-safe. All return at once without the option, without a ledger in a
// file that has a name, and in a child of vfork.

// Waits until memlog has searched the process or is gone, once. Other threads that call it
// meanwhile wait, too.
void hold_exit();
// Waits once more after exit handlers and destructors, if memlog has requested it.
void hold_after_exit();

// Returns `main` or, with the option, a function that calls `main` and then hold_exit().
next::MainFunction* held_main(next::MainFunction* main);

// ---- The event log of this process (MTRACE_EVENTS): its beginning and its end.

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
