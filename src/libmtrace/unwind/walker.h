// Walks the call stack of the current thread by call-frame information (.eh_frame), without frame
// pointers, locks, allocation or faults. See doc/internals/unwinding.md.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mtrace::unwind {

// The state of the hooked function's caller just after the call returned.
struct Registers {
  uintptr_t pc;  // return address
  uintptr_t sp;  // stack pointer after the return: the hook's canonical frame address
  uintptr_t fp;  // frame pointer in the caller: rbp, x29
};

enum class End : uint8_t {
  kBottom,  // the outermost function (its return address is undefined or zero)
  kDepth,   // `depth` frames were written; there are more
  kLost,    // no or unusable call-frame information, or unreadable memory
};

struct Walk {
  uint64_t hash;   // of the frames; equal frames give an equal hash within this process
  uint32_t count;  // frames written
  End end;
  // Index of the first frame that was guessed (unwind/slow_walk.h): it and all that follow may
  // be wrong. 0: none was; the first frame never is.
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

// walk(), up to where it joins the last walk, which it becomes. Leaves the frames of last.shared()
// pieces unwritten, the outermost ones.
Walk walk_to_last(const Registers& from, uintptr_t* frames, unsigned depth, LastWalk& last);

// Libunwind, for MTRACE_UNWINDER=libunwind and as the reference for tests of the walker.

// Loads libunwind.so.8 with local scope: in the global scope it would take over the exception
// unwinding of the host. False: not installed, or a function is missing. May allocate.
bool open_libunwind();
// As walk(). May allocate and take libunwind's locks on first use of an object; a walk from inside
// libunwind is empty and lost. Not for signal handlers.
Walk libunwind_walk(const Registers& from, uintptr_t* frames, unsigned depth);
// Selects libunwind for all later walks (before threads exist). False: not installed.
bool use_libunwind();

}  // namespace mtrace::unwind

// Caller: Registers in so few words that they go from function to function in registers. Valid
// while the function runs in which MTRACE_CALLER() is expanded, which must be compiled with a frame
// pointer.
#ifdef __x86_64__
#include "unwind/x86_64/registers.h"
#else
#include "unwind/aarch64/registers.h"
#endif

// Registers of the caller of the function this is expanded in.
#define MTRACE_CALLER_REGISTERS() (::mtrace::unwind::Registers(MTRACE_CALLER()))
