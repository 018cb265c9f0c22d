// Frames of many kinds. Compiled by both compilers, with and without frame pointers; FRAMES is the
// name of the table.
#include "walkcheck/frames.h"

#include <stdlib.h>

namespace frames {
namespace {

[[gnu::always_inline]] inline void allocate() {
  free(malloc(1 + next(200)));
  count();
}

// The same frame calls from one of two places.
[[gnu::always_inline]] inline void level(unsigned left) {
  allocate();
  if (seldom(2048)) step_from_here();
  if ((next(2) != 0) != seldom(64)) {
    go_on(left);
    asm volatile("# one" ::: "memory");
  } else {
    go_on(left);
    asm volatile("# two" ::: "memory");
  }
  if (seldom(2048)) step_from_here();
}

[[gnu::always_inline]] inline void use(void* room) { asm volatile("" ::"r"(room) : "memory"); }

template <unsigned kBytes>
void of_size(unsigned left) {
  char room[kBytes];
  use(room);
  level(left);
  use(room);
}

void dynamic(unsigned left) {
  void* const room = __builtin_alloca(16 + next(3000));
  use(room);
  level(left);
  use(room);
}

void dynamic_in_turn(unsigned left) {
  use(__builtin_alloca(16 + next(200)));
  level(left / 2);
  use(__builtin_alloca(16 + next(200)));
  level(left / 2);
}

template <unsigned kAlign>
void aligned(unsigned left) {
  alignas(kAlign) char room[kAlign];
  use(room);
  level(left);
  use(room);
}

void aligned_and_dynamic(unsigned left) {
  alignas(64) char room[64];
  use(room);
  use(__builtin_alloca(16 + next(3000)));
  level(left);
  use(room);
}

// Some of its arguments lie on the stack: GCC finds the caller by another register.
[[gnu::noinline]] void aligned_below_arguments(unsigned left, long a, long b, long c, long d,
                                               long e, long f, long g) {
  alignas(64) long room[8] = {a, b, c, d, e, f, g};
  use(room);
  level(left);
  use(room);
}
void arguments(unsigned left) {
  allocate();
  aligned_below_arguments(left, 1, 2, 3, 4, 5, 6, next(7));
  allocate();
}

// Keeps values of its own in all registers that functions preserve, rbp among them.
void registers(unsigned left) {
  unsigned a = next(9), b = next(9), c = next(9), d = next(9), e = next(9), f = next(9);
  level(left);
  asm volatile("" ::"r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f));
}

void jumps(unsigned left) {
  allocate();
  return go_on(left);
}

[[gnu::noinline]] void throws(unsigned left) {
  level(left);
  throw 1;
}
void catches(unsigned left) {
  try {
    throws(left / 2);
  } catch (int) {
    level(left / 2);
  }
}

// Interrupted at an instruction that the handler skips, or behind one.
void interrupted_or_trapped(unsigned left) {
  left_to_handler = left;
  if (next(2) != 0) {
    asm volatile("ud2" ::: "memory");
  } else {
    asm volatile("int3" ::: "memory");
  }
}

}  // namespace

extern "C" const Frame FRAMES[kFrames] = {of_size<8>, of_size<24>, of_size<136>, of_size<1000>,
                                          of_size<5000>, of_size<40'000>, dynamic, dynamic_in_turn,
                                          registers, jumps, catches,
                                          // Not plain.
                                          aligned<32>, aligned<64>, aligned<4096>,
                                          aligned_and_dynamic, arguments, interrupted_or_trapped};

}  // namespace frames
