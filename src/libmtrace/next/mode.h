// What this process does with the calls of its hooks: two words, and a hook reads each by one load.
//
//   g_mode         chosen by               a hook of malloc               a hook of free
//   kNotReady      the loader              gives own memory (bootstrap.h)  keeps own memory
//   kEvery         nothing else            records each block             forgets each block
//   kEveryFilled   MTRACE_FILL             the same, and fills it         the same: glibc fills
//   kSample        MTRACE_SAMPLE           records where a sample falls,  forgets it if it may be
//                                          else jumps on                  recorded, else jumps on
//   kSampleAfter   the same, with a fill   the same, but looks after the  the same
//                  or nested hooks         call
//
//   *g_counting    new blocks   frees of known ones   event log
//   kUnsettled     as decided by counting_slowly(): not started, or a fork's child
//   kRecording     recorded     taken out             none
//   kStopped       go unseen    taken out             as before
//   kLogging       recorded     taken out             written
//   kFull          lost         taken out             none (MTRACE_MAX_MEMORY)
//
// All pairs exist but kLogging with samples (life/options.cc refuses both options together).
#pragma once

#include <cstdint>

#include "base/atomic.h"

namespace mtrace::hook {

enum class HookMode : uint32_t {
  kEvery,
  kEveryFilled,
  kSample,
  kSampleAfter,
  kNotReady,
};
// Written while the process has one thread, but for the step from kSample to kSampleAfter.
[[gnu::visibility("hidden")]] extern HookMode g_mode;
inline bool samples() { return g_mode == HookMode::kSample || g_mode == HookMode::kSampleAfter; }
// Whether a free needs nothing but the exact path. By one comparison.
inline bool frees_exactly() {
  static_assert(static_cast<int>(HookMode::kEvery) == 0);
  static_assert(static_cast<int>(HookMode::kEveryFilled) == 1);
  return g_mode <= HookMode::kEveryFilled;
}

// Lies in a page that reads as zero after fork, so that one load answers both "are we on?" and "are
// we a new process?".
enum Counting : uint64_t { kUnsettled = 0, kRecording = 1, kStopped = 2, kLogging = 3, kFull = 4 };
[[gnu::visibility("hidden")]] extern const uint64_t* g_counting;

}  // namespace mtrace::hook
