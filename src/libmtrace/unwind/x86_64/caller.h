// See unwind/caller.h.
#pragma once

#include <cstdint>

#include "unwind/caller.h"

namespace mtrace::unwind {

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

}  // namespace mtrace::unwind
