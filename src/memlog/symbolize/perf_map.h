// Names of JIT-compiled code, from the file that runtimes write for perf(1): /tmp/perf-PID.map,
// lines of "START SIZE NAME" with START and SIZE in hex
// (linux/tools/perf/Documentation/jit-interface.txt).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mtrace::symbolize {

class PerfMap {
 public:
  PerfMap() = default;
  // Malformed lines are skipped: the runtime may be writing while this reads.
  explicit PerfMap(std::string_view text);

  // The name at an address, or nullptr. Of overlapping entries the last one in the file: code
  // that took the place of older code.
  const std::string* find(uint64_t address) const;

 private:
  struct Range {
    uint64_t begin;
    uint64_t end;
    size_t order;
    std::string name;
  };
  std::vector<Range> ranges_;  // sorted by begin
  uint64_t longest_ = 0;       // bounds how far back an entry may reach
};

// The map of process `pid`, empty unless it is a regular file, of this user or root, that was
// written since `started` (as in a memlog): /tmp belongs to everyone and pids return.
PerfMap load_perf_map(int64_t pid, const std::string& started);

}  // namespace mtrace::symbolize
