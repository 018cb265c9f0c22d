// When the blocks of each stack were allocated and freed, in equal intervals of an event log, for a
// page that shows any span of time; and their sizes at two moments.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "view/export/event_stream.h"
#include "view/heap/block_sizes.h"

namespace mtrace::exporting {

// The live blocks of a stack, by class of their sizes (analyze::SizeHistogram::class_of).
using SizeClasses = std::map<size_t, analyze::SizeClass>;
// By id of the stack.
using StackSizes = absl::flat_hash_map<uint64_t, SizeClasses>;

// Blocks of a stack that were allocated in one interval and freed in one.
struct Life {
  uint32_t born = 0;
  uint32_t died = 0;
  uint64_t bytes = 0;
  uint64_t blocks = 0;
};

struct Lives {
  static constexpr uint32_t kBefore = UINT32_MAX - 1;  // born before the log began
  static constexpr uint32_t kNever = UINT32_MAX;       // not freed until its end

  struct Sample {
    uint64_t live = 0;      // bytes, the most in the interval
    uint64_t resident = 0;  // bytes, as it was told last; 0: not yet
  };

  int64_t first = 0;   // nanoseconds from the start of the process to the beginning of the log
  uint64_t step = 1;   // nanoseconds of an interval
  uint32_t count = 1;  // intervals
  absl::flat_hash_map<uint64_t, std::vector<Life>> stacks;  // by the id of the stack
  std::vector<Sample> samples;                              // by interval
  StackSizes at_peak;                                       // when most bytes were live
  StackSizes at_end;
};

// Reads the log twice. Takes up to 200 intervals, fewer if there would be more than 400,000 lives.
Lives lives_of(const EventStream& stream);

}  // namespace mtrace::exporting
