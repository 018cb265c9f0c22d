// The memory that a walk reads saved registers from. Three kinds:
//
// Trusted: the part of the current thread's own stack that was once found readable, page by page,
// up to its upper end. Such memory stays readable as long as the thread lives, so it is read
// directly. The upper end is the thread control block, which glibc places at the upper end of a
// thread's stack (also of one that the program supplied), or `__libc_stack_end` in the main thread.
//
// Another stack that the walk is on (fibers, alternate signal stacks): from its stack pointer
// upwards, page by page as the walk goes, each page probed once a walk and then read directly. The
// thread, or the signal handler that it returns to, runs on it, so it does not go away.
//
// Anything else (whatever a damaged frame points to) is copied by the kernel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cfi/frame_registers.h"

namespace mtrace::unwind {

struct StackRange {  // [low, high); low == high: nothing is trusted yet
  uintptr_t low;
  uintptr_t high;
};

inline bool covers(const StackRange& range, uintptr_t address) {
  return address - range.low < range.high - range.low;
}

namespace internal {
// A signal handler may walk between any two stores to this: `low` goes down before `size` grows, so
// that whatever the handler sees as trusted is readable.
struct ThreadStack {
  uintptr_t low;  // trusted: [low, low + size)
  uintptr_t size;
  uintptr_t high;     // upper end, 0: not known yet
  uintptr_t gap;      // end of an unreadable page below: what lies lower is another stack; 0: none
  uintptr_t foreign;  // 64 KiB region in which a stack pointer was last found outside, 0: none
};
[[gnu::visibility("hidden")]] extern thread_local constinit ThreadStack thread_stack;
}  // namespace internal

// The range trusted so far for the current thread.
inline StackRange trusted_stack() {
  const internal::ThreadStack& stack = internal::thread_stack;
  return {stack.low, stack.low + stack.size};
}

// Extends the trusted range down to `sp` if the memory between is readable without a gap.
// System calls: one for each new page. Async-signal-safe.
StackRange trust_stack(uintptr_t sp);

// Reads words of each kind for one walk, which begins at `sp`.
class StackMemory : public cfi::FrameMemory {
 public:
  StackMemory(const StackRange& trusted, uintptr_t sp)
      : cfi::FrameMemory(
            [](cfi::FrameMemory* self, uintptr_t address, unsigned size, uintptr_t* value) {
              return static_cast<StackMemory*>(self)->read_sized(address, size, value);
            }),
        trusted_(trusted) {
    moved_to(sp);
  }

  // Call when the walk has come to a stack pointer that may be on another stack.
  void moved_to(uintptr_t sp) {
    if (!holds(sp)) find_stack(sp);
  }

  // In place of the base's, without the indirect call.
  bool read(uintptr_t address, uintptr_t* value) {
    return read_sized(address, sizeof *value, value);
  }
  // Reads a word at or above `sp`, where the walk is, in the same stack. False also for one more
  // than 64 KiB above the place where the walk came to a stack other than the thread's own.
  bool read_above(uintptr_t sp, uintptr_t address, uintptr_t* value);
  // Whether it is in what is known of the stacks.
  bool holds(uintptr_t address) const {
    return covers(trusted_, address) || covers(other_, address);
  }
  // Whether a word at `address` would no longer be in the thread's own stack, but the one below is.
  bool is_own_end(uintptr_t address) const {
    return covers(trusted_, address - 1) && trusted_.high - address < sizeof address;
  }
  // `size` of 1, 2, 4 or 8 bytes, zero-extended.
  bool read_sized(uintptr_t address, unsigned size, uintptr_t* value);

 private:
  void find_stack(uintptr_t sp);
  bool extend_other(uintptr_t address, unsigned size);

  StackRange trusted_;
  StackRange other_ = {0, 0};  // probed in this walk; other_.high is the end of a page
};

}  // namespace mtrace::unwind
