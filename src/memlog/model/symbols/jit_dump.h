// Names of JIT-compiled code from a jitdump file, as runtimes write it for perf(1)
// (linux/tools/perf/Documentation/jitdump-specification.txt).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mtrace::symbols {

// A jitdump as lines of a perf map (perf_map.h), a line for each piece of code that was made or
// moved, in the order of the file.
struct JitDumpLines {
  std::string text;
  uint64_t then =
      0;  // bytes of `text` from the records that end within the first bytes of the file
};

// `then`: bytes that the file had when the report was taken. Stops at the first record that is
// malformed or cut short: the runtime may be writing. Empty for a file of another format or byte
// order.
JitDumpLines jit_dump_lines(std::string_view file, uint64_t then);

}  // namespace mtrace::symbols
