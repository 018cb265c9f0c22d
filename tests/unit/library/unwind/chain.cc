// Call chains of known shape, compiled several times with different compilers and flags; CHAIN is
// the name of the one function that the tests see. No call is in tail position.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace {

// Keeps what follows a call from being dropped, so that the call is not a jump.
#define AFTER(value) asm volatile("" : : "r"(value) : "memory")

struct Chain {
  void (*leaf)(void*);
  void* argument;
};

[[gnu::noinline]] int call_leaf(const Chain& chain) {
  chain.leaf(chain.argument);
  AFTER(&chain);
  return 1;
}

[[gnu::noinline]] int recurse(const Chain& chain, unsigned depth) {
  volatile char frame[40];
  frame[0] = static_cast<char>(depth);
  const int result = depth == 0 ? call_leaf(chain) : recurse(chain, depth - 1);
  return result + frame[0];
}

// A frame whose size is known only when it runs.
[[gnu::noinline]] int variable(const Chain& chain, unsigned size) {
  auto* block = static_cast<volatile char*>(__builtin_alloca(size));
  block[0] = 1;
  const int result = recurse(chain, 3);
  return result + block[0];
}

// A frame that is realigned: GCC finds its CFA through a saved pointer when it also has an alloca.
[[gnu::noinline]] int realigned(const Chain& chain, unsigned size) {
  alignas(64) volatile char line[64];
  line[0] = 1;
  AFTER(&line);
  auto* block = static_cast<volatile char*>(__builtin_alloca(size));
  block[0] = 2;
  const int result = variable(chain, size);
  return result + line[0] + block[0];
}

// More live values than there are registers to preserve.
[[gnu::noinline]] int busy(const Chain& chain, unsigned seed) {
  unsigned a = seed * 3, b = seed * 5, c = seed * 7, d = seed * 11, e = seed * 13, f = seed * 17;
  asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
  const int result = realigned(chain, 100 + seed);
  asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
  return result + static_cast<int>(a + b + c + d + e + f);
}

}  // namespace

// leaf is called by call_leaf, by recurse 4 times, variable, realigned, busy, and this: 9 frames.
extern "C" int CHAIN(void (*leaf)(void*), void* argument) {
  const Chain chain{leaf, argument};
  const int result = busy(chain, 7);
  AFTER(&chain);
  return result;
}
