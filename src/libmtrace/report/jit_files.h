// Files in which a runtime names the code that it makes, for perf(1): their sizes when the report
// was taken. Async-signal-safe.
#pragma once

#include <cstdint>

#include "base/writer.h"

namespace mtrace::report {

// Writes "# perf-map: N bytes" for /tmp/perf-PID.map, and "# jit-dump: N bytes PATH" for a
// jit-PID.dump that the process has mapped; each only if there is such a file. Code that is made
// later may take the addresses of other code: names after the first N bytes are later ones.
void write_jit_files(Writer& out, uint32_t pid);

}  // namespace mtrace::report
