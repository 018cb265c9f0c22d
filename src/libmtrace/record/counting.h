// Whether this process records blocks: one word, which a hook reads by one load.
//
//   word         new blocks   frees of known ones   event log
//   kUnsettled   as decided by counting_slowly(): not started, or a fork's child
//   kRecording   recorded     taken out             none
//   kStopped     go unseen    taken out             as before
//   kLogging     recorded     taken out             written
//   kFull        lost         taken out             none (MTRACE_MAX_MEMORY)
#pragma once

#include <cstdint>

#include "base/atomic.h"

namespace mtrace::hook {

// The word lies in a page that reads as zero after fork, so that one load answers both "are we on?"
// and "are we a new process?".
enum Counting : uint64_t { kUnsettled = 0, kRecording = 1, kStopped = 2, kLogging = 3, kFull = 4 };
[[gnu::visibility("hidden")]] extern const uint64_t* g_counting;

// Makes `word` the one to read. `set_up_child` is called in a fork's child, where the word is
// kUnsettled. nullptr: the process counts nothing from now on.
void count_by(const uint64_t* word, void (*set_up_child)());

// True: blocks of this process are taken out of the ledger when they are freed, after doing what
// a new process has to do first. Kept out of the hot path.
bool counting_slowly();
inline bool counting() { return load(*g_counting) == kRecording || counting_slowly(); }
// True: and new ones are put in.
bool recording_slowly();
inline bool recording() { return load(*g_counting) == kRecording || recording_slowly(); }

}  // namespace mtrace::hook
