// A thread's walks by a memory, held against walks without.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/atomic.h"
#include "unwind/walk_memory.h"
#include "unwind/walker.h"

namespace mtrace::unwind {

struct KnownWalks {
  static constexpr unsigned kMost = 128;

  WalkMemory memory;
  unsigned depth = 10;
  bool always = false;                        // whether every walk is remembered
  void (*around)(bool begins) = [](bool) {};  // what is done with the memory
  uint64_t walks = 0;
  uint64_t known = 0;
  uint64_t wrong = 0;
  Registers last = {};  // compared
  // By the number that is remembered; made before, because signal handlers add to them.
  std::vector<Walk> results = std::vector<Walk>(1 << 20);
  uint32_t numbers = 0;

  // The walk that is known, or gone and remembered, has to be the one without memory.
  void compare(const Registers& from) {
    last = from;
    uintptr_t plain_frames[kMost];
    const Walk plain = walk(from, plain_frames, depth);
    around(true);
    WalkMemory::Known found;
    const uint32_t number = memory.find(from, found) ? found.stack : 0;
    around(false);
    ++walks;
    if (number != 0) {
      ++known;
      if (!same(results.at(number), plain)) ++wrong;
      return;
    }
    if (!memory.is_worthwhile() && !always) return;
    uintptr_t frames[kMost];
    StackWord words[WalkDraft::most_words(WalkDraft::kMostFrames)];
    WalkDraft draft(from, words, std::size(words));
    const Walk again = walk_and_note(frames, depth, draft);
    if (!same(again, plain) || memcmp(frames, plain_frames, plain.count * sizeof frames[0]) != 0) {
      ++wrong;
    }
    if (numbers + 1 == results.size()) return;
    const uint32_t fresh = count_up_own(numbers);
    results[fresh] = again;
    around(true);
    memory.remember(draft, depth, fresh);
    around(false);
  }
  // Whether it is known; then it has to be the one without memory.
  bool knows(const Registers& from) {
    uintptr_t frames[kMost];
    WalkMemory::Known found;
    const uint32_t number = memory.find(from, found) ? found.stack : 0;
    if (number != 0 && !same(results[number], walk(from, frames, depth))) ++wrong;
    return number != 0;
  }

  static bool same(const Walk& a, const Walk& b) {
    return a.hash == b.hash && a.count == b.count && a.end == b.end;
  }
};

}  // namespace mtrace::unwind
