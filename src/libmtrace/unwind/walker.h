// Walks the call stack of the current thread by call-frame information (.eh_frame), without frame
// pointers, locks, allocation or faults. See doc/internals/unwinding.md.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mtrace::unwind {

// Where a walk begins: the state of the hooked function's caller just after the call returned.
struct Registers {
  uintptr_t pc;  // return address
  uintptr_t sp;  // stack pointer after the return: the hook's canonical frame address
  uintptr_t fp;  // rbp in the caller
};

// Registers of the caller of the function this is expanded in. That function must be compiled
// with a frame pointer.
#define MTRACE_CALLER_REGISTERS() (::mtrace::unwind::Registers(MTRACE_CALLER()))

// Registers in one word, which goes from function to function in a register: the frame of the
// function that MTRACE_CALLER() is expanded in. Valid while that function runs.
struct Caller {
  const uintptr_t* frame;

  operator Registers() const {
    return {frame[1], reinterpret_cast<uintptr_t>(frame + 2), frame[0]};
  }
};
#define MTRACE_CALLER() \
  (::mtrace::unwind::Caller{static_cast<const uintptr_t*>(__builtin_frame_address(0))})

// MTRACE_CALLER() for a function that a hook calls in its last line, by a jump. A compiler that
// does not optimise makes it a call: then this reads the hook's frame.
#ifdef __OPTIMIZE__
#define MTRACE_CALLER_OF_HOOK() MTRACE_CALLER()
#else
#define MTRACE_CALLER_OF_HOOK() \
  (::mtrace::unwind::Caller{    \
      reinterpret_cast<uintptr_t*>(*static_cast<uintptr_t*>(__builtin_frame_address(0)))})
#endif

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

// Writes up to `depth` (1 to 128) look-up addresses, innermost first: the return address minus
// one, for a function interrupted by a signal its pc unchanged. Async-signal-safe, thread-safe;
// leaves errno alone; uses less than 1 KiB of stack when the rules are cached.
Walk walk(const Registers& from, uintptr_t* frames, unsigned depth);

class WalkDraft;

// walk() from draft.from() on; collects in the draft the words that the walk depends on.
Walk walk_and_note(uintptr_t* frames, unsigned depth, WalkDraft& draft);

// Selects libunwind for all later walks (before threads exist). False: not installed.
bool use_libunwind();

}  // namespace mtrace::unwind
