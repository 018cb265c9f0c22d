// Resources of the program's own: sizes by kind and id, attributed to stacks as blocks are, and
// never part of the heap. Thread-safe; async-signal-safe; leaves errno alone.
#pragma once

#include <cstdint>

#include "format/calls.h"
#include "unwind/walker.h"

namespace mtrace::hook {

// Both return 0, or -1 when there is no room or the call is invalid, which is counted
// (report/notes.h). The process must be counting.
int record_resource(const char* kind, uint64_t id, int64_t size, const unwind::Registers& caller);
int release_resource(const char* kind, uint64_t id);

}  // namespace mtrace::hook
