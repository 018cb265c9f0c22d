// A timeline file in memory (format/timeline.h).
#pragma once

#include "util/prelude.h"

namespace mtrace::profile {

struct Sample {
  uint64_t milliseconds = 0;  // since the process was started
  uint64_t live = 0;          // bytes, the most in the interval
  uint64_t blocks = 0;        // at that moment
  uint64_t resident = 0;      // bytes, the most in the interval
  uint64_t allocations = 0;   // calls in the interval

  bool operator==(const Sample&) const = default;
};

// Adds a later sample to one: what both intervals together have to say.
void add(Sample& sample, const Sample& later);

struct Timeline {
  std::string program;
  int64_t pid = 0;
  std::string started;    // as in a memlog
  uint64_t interval = 0;  // milliseconds
  std::vector<Sample> samples;

  // Halves the resolution: each two samples become one.
  void halve();
};

std::string write(const Timeline& timeline);
// Reads a file. Throws FileError when it cannot be read, FormatError when it is no timeline or
// incomplete.
Timeline read_timeline(const std::string& path);

}  // namespace mtrace::profile
