// Walks the call stack of the current thread by call-frame information (.eh_frame), without frame
// pointers, locks, allocation or faults. See doc/internals/unwinding.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "unwind/caller.h"

namespace mtrace::unwind {

enum class End : uint8_t {
  kBottom,  // the outermost function (its return address is undefined or zero)
  kDepth,   // `depth` frames were written; there are more
  kLost,    // no or unusable call-frame information, or unreadable memory
};

struct Walk {
  uint64_t hash;   // of the frames; equal frames give an equal hash within this process
  uint32_t count;  // frames written
  End end;
  // Index of the first frame that was guessed by frame pointer (unwind/frame_pointer.h): it and all
  // that follow may be wrong. 0: none was; the first frame never is.
  uint8_t guessed;
};

// Writes up to `depth` (1 to format::kMaxDepth) look-up addresses, innermost first: the return
// address minus one, for a function interrupted by a signal its pc unchanged. Async-signal-safe,
// thread-safe; leaves errno alone; uses less than 1 KiB of stack when the rules are cached.
Walk walk(const Registers& from, uintptr_t* frames, unsigned depth);

class WalkDraft;

// walk() from draft.from() on; collects in the draft the words that the walk depends on.
Walk walk_and_note(uintptr_t* frames, unsigned depth, WalkDraft& draft);

class LastWalk;

// walk(), up to where it meets the last walk, which it becomes. Leaves the frames of last.shared()
// pieces unwritten, the outermost ones.
Walk walk_to_last(const Registers& from, uintptr_t* frames, unsigned depth, LastWalk& last);

// Selects libunwind for all later walks (before threads exist). False: not installed.
bool use_libunwind();

}  // namespace mtrace::unwind
