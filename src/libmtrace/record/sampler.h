// MTRACE_SAMPLE: which blocks are recorded, and which may have been. doc/internals/tables.md has
// the argument.
//
// Thread-safe; async-signal-safe: a signal handler in between may add some bytes to the countdown
// or take some off, and the distance that it draws is as random as any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "ledger/ledger.h"
#include "record/thread_state.h"

namespace mtrace::record {

inline bool samples() { return ledger::g_sample_mean != 0; }

// Starts sampling: one sample in `mean` bytes on average. By a thread that is alone.
void start_sampling(uint64_t mean);
// For a fork's child, whose tables may be new: makes it draw other samples than its parent.
void sample_after_fork();
// Ends sampling: no block counts as recorded any more. By a thread that is alone.
void forget_samples();

// Subtracts `size` bytes from the countdown. False: a sample may fall into the block; no change.
inline bool skip(size_t size) {
  const uint64_t until = t_thread.until_sample;
  if (size >= until) [[unlikely]]
    return false;
  t_thread.until_sample = until - size - 1;
  return true;
}
// Draws the distance to the next sample. False: none falls into the block, which was subtracted.
bool sample_falls_into(size_t size);

// Number of live recorded blocks per class of addresses; 255: many, and stays so, even when two
// threads find a counter at 254.
[[gnu::visibility("hidden")]] extern uint8_t g_recorded[1u << 16];

inline uint8_t& recorded_like(const void* block) {
  return g_recorded[reinterpret_cast<uintptr_t>(block) >> 4 & (sizeof g_recorded - 1)];
}
// False: the block is not in the ledger, and not from the bootstrap memory.
inline bool may_be_recorded(const void* block) { return load(recorded_like(block)) != 0; }
void now_recorded(const void* block);
void no_longer_recorded(const void* block);

}  // namespace mtrace::record
