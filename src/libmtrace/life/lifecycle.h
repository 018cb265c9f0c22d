// The life of the library in a process: start, fork, end.
#pragma once

#include <cstddef>

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

}  // namespace mtrace::life
