// The files in which a runtime names the code that it makes, for perf(1): what they were when the
// report was taken. Async-signal-safe.
#pragma once

#include <cstdint>

#include "base/writer.h"

namespace mtrace::report {

// "# perf-map: N bytes" of /tmp/perf-PID.map, and "# jit-dump: N bytes PATH" of a jit-PID.dump that
// the process has mapped; each only if there is such a file. Code that is made later may lie where
// other code was: N tells which names are of later.
void write_jit_files(Writer& out, uint32_t pid);

}  // namespace mtrace::report
