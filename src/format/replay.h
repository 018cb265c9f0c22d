// The protocol between memlog replay and the program memlog-replay, which it starts: standard input
// is a file with a ReplayPlan and its operations, standard output receives a ReplayResult. Both are
// of one installation, so the format has no version.
#pragma once

#include <cstdint>

namespace mtrace::format {

enum class ReplayCode : uint8_t {
  kMalloc,
  kCalloc,
  kAligned,
  kRealloc,
  kFree,
  kThreadEnd,
};

struct ReplayOperation {
  ReplayCode code;
  uint8_t alignment;  // of kAligned: a power of two, as its exponent
  uint16_t thread;    // below ReplayPlan::threads; 0 is the first thread of the process
  uint32_t slot;      // the block, below ReplayPlan::slots; unused with kThreadEnd
  uint64_t size;      // bytes, of all but kFree and kThreadEnd
};
static_assert(sizeof(ReplayOperation) == 16);

struct ReplayPlan {
  uint64_t operations = 0;
  uint64_t at_peak = 0;  // number of operations after which live memory is at its peak
  uint32_t slots = 0;
  uint32_t threads = 1;  // most threads that run at once
};

// Sizes are bytes of resident memory beyond what the process has before the first operation.
struct ReplayResult {
  uint64_t nanoseconds = 0;  // in the operations and the first writes to their blocks
  int64_t peak = 0;
  int64_t at_live_peak = 0;
  int64_t at_end = 0;
  int64_t trimmed = 0;     // after the allocator was asked to return free memory
  uint64_t failed = 0;     // allocations
  char library[256] = {};  // that defines malloc; a path, cut if it is longer
};

inline constexpr char kReplayProgram[] = "mtrace/memlog-replay";
// With this argument the program only writes which library defines malloc.
inline constexpr char kReplayNothing[] = "--nothing";

}  // namespace mtrace::format
