// Whether what is live, or what has grown, stays within a limit.
#pragma once

#include <cstdint>
#include <string>

#include "analyze/filter.h"
#include "analyze/table.h"

namespace mtrace::analyze {

struct Verdict {
  std::string what;    // "live", "grown", "grown since the baseline"
  uint64_t bytes = 0;  // of all stacks in `table`; saturates
  uint64_t limit = 0;  // bytes allowed
  Table table;         // the heap stacks that count, the largest first
  LeftOut left_out;

  bool good() const { return bytes <= limit; }
};

}  // namespace mtrace::analyze
