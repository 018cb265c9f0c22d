// What the inner loop of walk() hands over: everything but frames on the trusted stack whose rule
// is a plain one.
#pragma once

#include "format/memlog.h"
#include "unwind/walker.h"

namespace mtrace::unwind {

// Off the critical path of a walk, which is a chain of loads. Multiplication by an odd number
// loses nothing; WalkState::result spreads what has gathered in the upper bits.
inline uint64_t add_to_hash(uint64_t hash, uintptr_t key) {
  return (hash + key) * 0x9e3779b97f4a7c15u;
}

// A walk between two steps: `count` frames are written, the last one is the frame that the
// registers belong to.
struct WalkState {
  uintptr_t key;  // of that frame, as for the rule cache
  uintptr_t sp;
  uintptr_t fp;
  uint64_t hash;
  uintptr_t* frames;
  uint32_t count;
  uint32_t depth;
  uint8_t guessed;  // as in Walk
  // The word that names the innermost Python function of the evaluation loop's next frame, where
  // the loop's last frame has led to it; 0: none has.
  uintptr_t next_python = 0;

  // Enters the frame of `next_key` as the last one.
  void enter(uintptr_t next_key) {
    hash = add_to_hash(hash, next_key);
    frames[count++] = next_key - 1;
    key = next_key;
  }
  // The same of a frame that was guessed.
  void enter_guessed(uintptr_t next_key) {
    if (guessed == 0) guessed = static_cast<uint8_t>(count);
    enter(next_key);
  }
  // The same of a frame that is no address and that the registers do not belong to.
  void add(uint64_t frame) {
    hash = add_to_hash(hash, frame);
    frames[count++] = frame;
  }
  Walk result(End end) const { return {format::mix64(hash), count, end, guessed}; }
};

// Goes on from `state`; from the beginning at `from`, with all registers, where that is needed.
Walk slow_walk(const Registers& from, WalkState state);

// The walk by the interpreter alone.
Walk full_walk(const Registers& from, uintptr_t* frames, unsigned depth);

}  // namespace mtrace::unwind
