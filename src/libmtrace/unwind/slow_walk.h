// The steps of walk() outside its inner loop: all but frames on the trusted stack whose rule is a
// plain one.
#pragma once

#include "format/memlog.h"
#include "unwind/stack_memory.h"
#include "unwind/walker.h"

namespace mtrace::unwind {

// Off the critical path of a walk, which is a chain of loads. Multiplication by an odd number loses
// nothing; WalkState::result spreads the bits that have gathered at the top.
inline constexpr uint64_t kHashFactor = 0x9e3779b97f4a7c15u;
inline uint64_t add_to_hash(uint64_t hash, uintptr_t key) { return (hash + key) * kHashFactor; }
inline uint64_t take_from_hash(uint64_t hash, uintptr_t key) {
  constexpr uint64_t kInverse = 0xf1de83e19937733du;
  static_assert(kHashFactor * kInverse == 1);
  return hash * kInverse - key;
}

// The code of this library, whose frames are no part of the program's stacks. Empty in tests.
struct OwnCode {
  uintptr_t start;
  uintptr_t size;
};
inline constinit OwnCode g_own_code = {};
inline bool is_own(uintptr_t address) { return address - g_own_code.start < g_own_code.size; }
// Most frames of it above the hooked function's caller; ends an endless unwind.
inline constexpr unsigned kMaxOwnFrames = 32;

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
  // Address of the word that names the innermost Python function of the evaluation loop's next
  // frame, as the loop's last frame led to it; 0: not known.
  uintptr_t next_python = 0;

  // Enters the frame of `next_key` as the last one.
  void enter(uintptr_t next_key) {
    hash = add_to_hash(hash, next_key);
    frames[count++] = next_key - 1;
    key = next_key;
  }
  // Leaves the last frame out if it is one of this library and not the innermost one. False: not.
  bool leave_own() {
    if (!is_own(key - 1)) [[likely]]
      return false;
    if (count > 1 && frames[count - 1] == key - 1) {
      hash = take_from_hash(hash, key);
      --count;
    }
    return true;
  }
  // Enters a frame that was guessed.
  void enter_guessed(uintptr_t next_key) {
    if (guessed == 0) guessed = static_cast<uint8_t>(count);
    enter(next_key);
  }
  // Adds a frame that is no address; the registers do not belong to it.
  void add(uint64_t frame) {
    hash = add_to_hash(hash, frame);
    frames[count++] = frame;
  }
  Walk result(End end) const { return {format::mix64(hash), count, end, guessed}; }
};

class WalkDraft;

// At a frame of Python's evaluation loop, the last one of `state`, which ends at `cfa`: adds the
// Python functions that it runs, innermost first, as many as there is room for. Does nothing if
// they are there already. `interrupted`: a signal has interrupted code between the loop and the
// allocation. `draft`: collects what the walk depends on, or nullptr. Lock-free, async-signal-safe,
// never faults; some 600 bytes of stack, 1.5 KiB for a function that is new. Defined in
// python/frames.cc.
void add_python_frames(WalkState& state, uintptr_t cfa, bool interrupted, WalkDraft* draft);

// Goes on from `state`, or starts again at `from` with all registers if a step needs them.
Walk slow_walk(const Registers& from, WalkState state);

// Walks by the interpreter of call-frame information alone.
Walk full_walk(const Registers& from, uintptr_t* frames, unsigned depth);

// ---- The caller of a frame without call-frame information is guessed. A walk that uses a guess
// says so (Walk::guessed).
//
// Code of JIT compilers, and assembly, mostly keeps rbp as the System V ABI shows it (figure 3.3):
// it points to the caller's rbp, and the return address is the word above. Other code keeps
// anything there, so a guess by rbp must be plausible.
//
// Code of a libc without call-frame information (musl's) keeps no frame pointer either. What the
// function's end takes from the stack says how large its frame is: the nearest end behind the pc,
// or else before it, by which a return address lies there. For a function without one (or whose end
// lies elsewhere) the stack is searched upwards for the code outside of libc that called libc, and
// frames of libc between are left out. There an address is a return address if it follows a call,
// is in libc or in code with call-frame information, and there that information leads to another
// one.

// Finds the caller of the frame `from`, whose pc lies in code that runs. `memory`: has moved to
// from.sp. Async-signal-safe; never faults.
//
// Of a frame of musl: caller->pc is 0 if it has no caller, as the thread began in libc. Of any
// other, false unless
// - from.fp is a multiple of 8, and lies at or above from.sp in the same stack, not more than 1 MiB
//   away;
// - the word above is an address behind a call instruction; or both it and from.pc are in no loaded
//   object, less than 2 GiB apart, and the caller's frame pointer is as plausible as from.fp.
//   (Java's interpreter pushes return addresses that no call precedes.)
bool guess_caller(StackMemory* memory, const Registers& from, Registers* caller);

}  // namespace mtrace::unwind
