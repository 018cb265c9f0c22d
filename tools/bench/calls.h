// What the benchmarks' own programs have in common.
#pragma once

#include <cstdint>

// Each call stays a call, and no two call sites become one.
#if defined(__clang__)
#define NEST __attribute__((noinline))
#else
#define NEST __attribute__((noipa))
#endif
#define DISTINCT(number) __asm__ volatile("# " #number ::: "memory")

struct Random {
  uint64_t state;
  uint32_t operator()() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<uint32_t>(state >> 32);
  }
};
