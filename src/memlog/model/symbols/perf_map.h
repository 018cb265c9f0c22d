// Names of JIT-compiled code, from the file that runtimes write for perf(1): /tmp/perf-PID.map,
// with lines "START SIZE NAME", START and SIZE in hex
// (linux/tools/perf/Documentation/jit-interface.txt).
#pragma once

#include "util/prelude.h"

namespace mtrace::symbols {

class PerfMap {
 public:
  bool empty() const { return ranges_.empty(); }

  PerfMap() = default;
  // Parses the map. Skips malformed lines: the runtime may be writing at the same time. `then`:
  // bytes that it had when the report was taken.
  explicit PerfMap(std::string_view text, uint64_t then = UINT64_MAX);

  // Returns the name at an address, or nullptr. Of overlapping entries the last that was there when
  // the report was taken wins: new code replaces old code. Where none was there, the last of all.
  const std::string* find(uint64_t address) const;

 private:
  struct Range {
    uint64_t begin;
    uint64_t end;
    size_t order;
    bool later;  // was not there yet when the report was taken
    std::string name;
  };
  std::vector<Range> ranges_;  // sorted by begin
  uint64_t longest_ = 0;       // the longest range: how far back an entry may reach
};

// Loads the map of process `pid`. Returns an empty map unless the file is regular, belongs to this
// user or root, and was written since `started` (a time as in a memlog): anyone can write to /tmp,
// and pids are reused.
// `then`: as in PerfMap.
PerfMap load_perf_map(int64_t pid, const std::string& started, uint64_t then = UINT64_MAX);
// The same of the jitdump at `path`.
PerfMap load_jit_dump(const std::string& path, const std::string& started, uint64_t then);

// A jitdump file (linux/tools/perf/Documentation/jitdump-specification.txt) as lines of a perf map,
// a line for each piece of code that was made or moved, in the order of the file.
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
