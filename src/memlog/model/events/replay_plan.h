// The allocations of an event log as a list of operations that a program without the log can
// perform: memlog-replay (src/replay).
#pragma once

#include "model/events/event_log.h"
#include "util/file.h"
#include "util/prelude.h"

namespace mtrace::events {

// What the log says of the program's own run. Sizes in bytes, as requested.
struct PlanFacts {
  uint64_t operations = 0;
  uint64_t threads = 0;      // all that allocated, reallocated or freed, at any time
  uint64_t nanoseconds = 0;  // from the first event to the last
  uint64_t live_peak = 0;
  uint64_t live_end = 0;
  uint64_t resident_peak = 0;  // of the whole process, as far as events tell; 0: not known
  uint64_t unknown_frees = 0;  // left out: of blocks that the log does not have
  uint64_t replaced = 0;  // blocks whose free is not in the log: freed when another took the place
};

struct MadePlan {
  util::Descriptor file;  // format::ReplayPlan and its operations; has no name
  PlanFacts facts;
};

// Reads the log to its end, twice: the first time for the alignments that memalign and its like
// were asked for, which are not in the log. An alignment is taken to be the largest power of two
// that divides all addresses of its stack. Blocks keep the threads that the log tells. Throws
// std::runtime_error if more than 65,535 threads run at once or 4 Gi blocks live; FileError if the
// list, 16 bytes an operation in TMPDIR, cannot be written.
MadePlan make_replay_plan(const std::string& path, EventLog& log);

}  // namespace mtrace::events
