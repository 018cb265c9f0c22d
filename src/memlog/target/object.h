// A file that a process has mapped, with the facts needed to find safe points.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mtrace::target {

struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool holds(uint64_t address) const { return address >= begin && address < end; }
};

// A function in which a thread may hold a lock that loading a library needs.
struct Guarded {
  Range code;
  std::string name;
};

enum class Care {
  kFunctions,      // no thread may be stopped inside `guarded`
  kAll,            // nor anywhere in this object (the loader)
  kAllButWaiting,  // nor anywhere in it unless it waits in one of `waits` (an allocator's own
                   // thread, libmtrace.so at the exit of the process)
};

struct Object {
  std::string name;         // last component of its path
  Range file;               // all of its segments
  std::vector<Range> code;  // the executable segments
  uint64_t eh_frame_header = 0;
  Care care = Care::kFunctions;
  std::vector<Guarded> guarded;
  std::vector<Range> waits;   // functions that wait and hold no lock but that of their condition
  std::vector<Range> passes;  // functions that only call the program's code

  bool holds(uint64_t address) const {
    for (const Range& range : code) {
      if (range.holds(address)) return true;
    }
    return false;
  }
};

}  // namespace mtrace::target
