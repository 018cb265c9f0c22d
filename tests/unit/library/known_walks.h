// A thread's walks by a memory, and up to the last one, held against walks alone.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/atomic.h"
#include "unwind/last_walk.h"
#include "unwind/walk_memory.h"
#include "unwind/walker.h"

// With frame pointers; clang keeps them at -O0, which the tests are built with.
#ifdef __clang__
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noinline, noclone, optimize("no-omit-frame-pointer")))
#endif

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
  LastWalk last_walk;
  uint32_t walking = 0;  // up to last_walk: one at a time
  uint64_t kept = 0;
  uint64_t shared = 0;  // pieces of tails that were known from the last walk
  // By the number that is remembered; made before, because signal handlers add to them.
  std::vector<Walk> results = std::vector<Walk>(1 << 20);
  uint32_t numbers = 0;

  // The walk that is known, or gone and remembered, has to be the one without memory.
  void compare(const Registers& from) {
    last = from;
    uintptr_t plain_frames[kMost];
    const Walk plain = walk(from, plain_frames, depth);
    if (exchange(walking, 1u) == 0) {
      compare_last(from);
      store_release(walking, 0u);
    }
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
    if (!memory.is_worthwhile(false) && !always) return;
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
  // What walk_to_last() leaves out has to be what the walk alone has there. A piece's index is made
  // of its frames here.
  void compare_last(const Registers& from) {
    constexpr unsigned kPiece = format::kLedgerTailFrames;
    uintptr_t alone[format::kMaxDepth];
    uintptr_t frames[format::kMaxDepth];
    const Walk whole = walk(from, alone, format::kMaxDepth);
    const Walk met = walk_to_last(from, frames, format::kMaxDepth, last_walk);
    const unsigned known = last_walk.shared();
    shared += known;
    const auto index_of = [&](unsigned piece) {
      uint64_t hash = 0;
      for (unsigned i = 0; i < kPiece; ++i) {
        hash = format::mix64(hash + alone[whole.count - 1 - piece * kPiece - i]);
      }
      return static_cast<uint32_t>(hash);
    };
    if (!same(met, whole) ||
        memcmp(frames, alone, (whole.count - known * kPiece) * sizeof frames[0]) != 0) {
      ++wrong;
      return;
    }
    for (unsigned i = 0; i < known; ++i) wrong += last_walk.tails()[i] != index_of(i) ? 1 : 0;
    // Now and then nobody tells the indices.
    if (!last_walk.kept() || ++kept % 5 == 0) return;
    const unsigned pieces = (whole.count - 1) / kPiece;
    for (unsigned i = known; i < pieces; ++i) last_walk.tails()[i] = index_of(i);
    last_walk.set_tails(pieces);
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
