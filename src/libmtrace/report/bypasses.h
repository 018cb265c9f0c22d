// Objects whose calls of malloc bypass this library (RTLD_DEEPBIND, dlmopen, -Bsymbolic). An object
// stays listed after it is unloaded, because it may leave memory behind that is not counted.
//
// All functions are thread-safe and async-signal-safe.
#pragma once

#include "base/writer.h"

namespace mtrace::report {

// Number of functions whose calls are checked.
inline constexpr unsigned kWatchedFunctions = 10;
// Call at start, when no other thread checks. For each function: its name, this library's own, and
// the one that the loader finds first.
void set_bound_here(const char* const (&names)[kWatchedFunctions],
                    const void* const (&own)[kWatchedFunctions],
                    const void* const (&first)[kWatchedFunctions]);

// Checks where the calls of all objects that are loaded now lead.
void look_for_bypasses();
// Call before dlclose(handle): checks the objects that it may unload, at most 8: the handle's own
// and the next ones in the loader's list, where those are that were loaded with it. Costs nothing
// for objects loaded with the program, else some 10 us for a known object and 70 us for a new one.
// Does nothing once the program may have a filter of system calls.
void look_before_unloading(const void* handle);

// Writes lines "# note: not covered: ...". Objects being recorded are left out.
void write_bypasses(Writer& out);

}  // namespace mtrace::report
