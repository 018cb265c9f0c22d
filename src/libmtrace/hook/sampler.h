// MTRACE_SAMPLE: which blocks are recorded, and which may have been. doc/tables.md has the
// argument.
//
// Thread-safe; async-signal-safe: a handler that comes between may take some bytes from the
// countdown or give them back, and what it draws is as good as any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "hook/thread_state.h"

namespace mtrace::hook {

// What the hooks do with a call.
enum class Way : uint32_t {
  kEvery,         // look at every block, if only to see that this program is not traced
  kEveryFilled,   // the same with MTRACE_FILL
  kEveryWatched,  // the same with MTRACE_UNKNOWN=stacks
  kSample,        // jump on, unless a sample falls into the block
  kSampleAfter,   // the same, but look after the call: malloc calls other hooks, or MTRACE_FILL is
                  // on
  kNotReady,      // the real functions are not known yet
};
// Written while the process has one thread, but for the step from kSample to kSampleAfter, and that
// to either when sampling starts late. A thread that is inside a hook then ends it as it began:
// its block is counted as itself. A block that is freed as an exact one was allocated as one, since
// its address came to the thread after the step that its allocation saw.
[[gnu::visibility("hidden")]] extern Way g_way;

inline bool samples() { return g_way == Way::kSample || g_way == Way::kSampleAfter; }

// From now on: one sample in `mean` bytes on average. By a thread that is alone.
void start_sampling(uint64_t mean);
// The same of a process that has counted every block until now, at any moment of any thread. Does
// nothing if it samples already.
void start_sampling_late(uint64_t mean);
// In a fork's child, whose tables may be new: it draws other samples than its parent.
void sample_after_fork();
// Every block is looked at again, and none counts as recorded. By a thread that is alone.
void forget_samples();

// Counts a block of `size` bytes down. False: a sample may fall into it, and nothing was counted.
inline bool skip(size_t size) {
  const uint64_t until = t_thread.until_sample;
  if (size >= until) [[unlikely]]
    return false;
  t_thread.until_sample = until - size - 1;
  return true;
}
// Draws the distance to the next sample. False: none falls into the block, which is counted.
bool sample_falls_into(size_t size);

// How many recorded blocks live at addresses like this one; 255: many. Nothing is lost when two
// threads find a counter at 254: it stays at 255.
[[gnu::visibility("hidden")]] extern uint8_t g_recorded[1u << 16];

inline uint8_t& recorded_like(const void* block) {
  return g_recorded[reinterpret_cast<uintptr_t>(block) >> 4 & (sizeof g_recorded - 1)];
}
// False: the block is certainly not in the ledger, and an allocator's (see bootstrap.h).
inline bool may_be_recorded(const void* block) { return load(recorded_like(block)) != 0; }
// From now on any block may be, so that the hook of free needs no further test to leave none out;
// or none. By a thread that is alone.
void all_may_be_recorded(bool may);
void now_recorded(const void* block);
void no_longer_recorded(const void* block);

}  // namespace mtrace::hook
