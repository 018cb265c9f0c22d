// The memory that a walk reads saved registers from. Two kinds:
//
// Trusted: the part of the current thread's own stack that was once found readable, page by page,
// up to its upper end. Such memory stays readable as long as the thread lives, so it is read
// directly. The upper end is the thread control block, which glibc places at the upper end of a
// thread's stack (also of one that the program supplied), or `__libc_stack_end` in the main
// thread.
//
// Anything else (fibers, alternate signal stacks, whatever a damaged frame points to) is read
// through the kernel, in a window of some hundred bytes at a time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mtrace::unwind {

struct StackRange {  // [low, high); low == high: nothing is trusted yet
  uintptr_t low;
  uintptr_t high;
};

inline bool covers(const StackRange& range, uintptr_t address) {
  return address - range.low < range.high - range.low;
}

namespace internal {
// A signal handler may walk between any two stores to this: `low` goes down before `size` grows,
// so that what it sees trusted is.
struct ThreadStack {
  uintptr_t low;      // trusted: [low, low + size)
  uintptr_t size;
  uintptr_t high;     // upper end, 0: not known yet
  uintptr_t foreign;  // 64 KiB region in which a stack pointer was last found outside, 0: none
};
[[gnu::visibility("hidden")]] extern thread_local constinit ThreadStack thread_stack;
}  // namespace internal

// What is trusted for the current thread already.
inline StackRange trusted_stack() {
  const internal::ThreadStack& stack = internal::thread_stack;
  return {stack.low, stack.low + stack.size};
}

// Extends the trusted range down to `sp` if the memory between is readable without a gap.
// System calls: one for each new page. Async-signal-safe.
StackRange trust_stack(uintptr_t sp);

// Reads words of either kind for one walk.
class StackMemory {
 public:
  explicit StackMemory(const StackRange& trusted) : trusted_(trusted) {}

  const StackRange& trusted() const { return trusted_; }
  // Call when the walk has come to a stack pointer that may be on another stack.
  void moved_to(uintptr_t sp) {
    if (!covers(trusted_, sp)) trusted_ = trust_stack(sp);
  }

  bool read(uintptr_t address, uintptr_t* value) {
    if (covers(trusted_, address) && trusted_.high - address >= sizeof *value) {
      *value = *reinterpret_cast<const uintptr_t*>(address);
      return true;
    }
    return read_outside(address, value, sizeof *value);
  }
  // `size` of 1, 2, 4 or 8 bytes, zero-extended.
  bool read_sized(uintptr_t address, unsigned size, uintptr_t* value);

 private:
  bool read_outside(uintptr_t address, uintptr_t* value, size_t size);

  static constexpr size_t kWindow = 384;
  StackRange trusted_;
  uintptr_t window_start_ = 0;
  size_t window_size_ = 0;
  alignas(8) char window_[kWindow];
};

}  // namespace mtrace::unwind
