// MTRACE_SAMPLE: which blocks are recorded, and which may have been. doc/internals/tables.md has the
// argument.
//
// Thread-safe; async-signal-safe: a handler that comes between may take some bytes from the
// countdown or give them back, and what it draws is as good as any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "next/mode.h"
#include "record/thread_state.h"

namespace mtrace::hook {

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
