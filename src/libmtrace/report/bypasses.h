// Objects whose calls of malloc go past this library (RTLD_DEEPBIND, dlmopen, -Bsymbolic). What was
// seen once stays: an object that is unloaded has left behind memory that is not counted.
//
// All functions are thread-safe and async-signal-safe.
#pragma once

#include "base/writer.h"

namespace mtrace::report {

// How many functions' calls are looked at.
inline constexpr unsigned kWatchedFunctions = 10;
// At start, when no other thread looks. Of each function: its name; this library's own; the one
// that the loader finds first.
void set_bound_here(const char* const (&names)[kWatchedFunctions],
                    const void* const (&own)[kWatchedFunctions],
                    const void* const (&first)[kWatchedFunctions]);

// Looks where the calls of all objects that are loaded now lead.
void look_for_bypasses();
// The same for those that dlclose(handle) may unload; before it. At most 8 objects: the handle's
// own and the next ones in the loader's list, where those stand that were loaded with it. Costs
// nothing for what was loaded with the program, else some 10 us an object that is known and 70 us a
// new one; not done once the program may have a filter of system calls.
void look_before_unloading(const void* handle);

// Lines "# note: not covered: ...". One that another thread is just noting is in the next report.
void write_bypasses(Writer& out);

}  // namespace mtrace::report
